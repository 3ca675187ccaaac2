-- End batches whose leases have run out; their games without a result are dealt again.
--
-- KEYS 1 batches  hash    batch -> lease (JSON)
--      2 due      zset    batch by the end of its lease
--      3 held     hash    access token -> batches with games that are still to be told
--      4 tests    hash    open matches
--      5 repeats  zset    '<match> <game>' to deal again
--      6 queue    zset    matches with games to deal
--      7 served   hash    match -> games dealt
-- ARGV 1 most batches at once: Redis does nothing else meanwhile
-- Reply {'lapsed', batches, games}  those that ended, and their games that are dealt again

local names = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', '(' .. text(now_ms()), 'LIMIT', 0,
  ARGV[1])
local games = 0
for _, name in ipairs(names) do
  local lease = cjson.decode(redis.call('HGET', KEYS[1], name))
  games = games + end_batch(KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], name,
    lease)
end
return {'lapsed', #names, games}
