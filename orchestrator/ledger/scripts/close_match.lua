-- End a test match: nothing more is dealt or recorded.
--
-- KEYS 1 tests    hash    match -> what claims look at (JSON)
--      2 queue    zset    matches with games to deal
--      3 repeats  zset    '<match> <game>' to deal again
--      4 served   hash    match -> games dealt
--      5 journal  stream  the match's, in its mirror by now
--      6 values   zset    of a tuning: values by their first iteration
--      7… its other tables  hashes  match -> …
-- ARGV 1 match
-- Reply {'closed'}

local match = ARGV[1]
local told = redis.call('HGET', KEYS[1], match)
if told then
  local had = tonumber(redis.call('HGET', KEYS[4], match))
  redis.call('ZREM', KEYS[2], place_in_queue(cjson.decode(told), match, had))
end
for _, one in ipairs(repeats_of(KEYS[3], match, -1)) do redis.call('ZREM', KEYS[3], one) end
redis.call('HDEL', KEYS[1], match)
redis.call('HDEL', KEYS[4], match)
for i = 7, #KEYS do redis.call('HDEL', KEYS[i], match) end
redis.call('DEL', KEYS[5])
redis.call('DEL', KEYS[6])  -- by itself: who may delete journals may not name others
return {'closed'}
