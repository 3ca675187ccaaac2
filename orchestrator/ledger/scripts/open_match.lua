-- Let a test match be dealt in lanes, or change how; what was dealt stays.
--
-- KEYS 1 tests    hash    match -> what claims look at (JSON)
--      2 specs    hash    match -> specification (JSON)
--      3 next     hash    match -> next game
--      4 repeats  zset    '<match> <game>' to deal again
--      5 served   hash    match -> games dealt
--      6 last     hash    match -> last entry of its journal
--      7 journal  stream  the match's
--      8 runs     string  counter of openings
--      9 mirrored hash    match -> last entry in its mirror
--     10 queue    zset    matches with games to deal
--     11 values   zset    of a tuning: values (JSON) by their first iteration
-- ARGV 1 match  2 what claims look at (JSON)  3 specification  4 next  5 games to deal again  6 entry that
--      its mirror ends at  7 test_opened (JSON)  8 schema version  9 by  10… of a tuning: first
--      iteration, values (JSON), and so on
-- Reply {'opened'}
--       {'elsewhere'}  it is open with another specification, or a mirror elsewhere has more of it

local match = ARGV[1]
local before = redis.call('HGET', KEYS[1], match)
if before then
  local mirrored = tonumber(redis.call('HGET', KEYS[9], match) or '0')
  if redis.call('HGET', KEYS[2], match) ~= ARGV[3] or mirrored > tonumber(ARGV[6]) then
    return {'elsewhere'}
  end
end
-- A newcomer begins beside the others of its priority: what they had before is no debt.
local facts, least = cjson.decode(ARGV[2]), nil
local function compare_with(other)
  local told = cjson.decode(redis.call('HGET', KEYS[1], other))
  local turns = tonumber(redis.call('HGET', KEYS[5], other)) / told.share
  if other ~= match and told.priority == facts.priority and (not least or turns < least) then
    least = turns
  end
end
-- One whose tables are not as its keeper wrote them keeps no other from being opened.
for _, other in ipairs(redis.call('HKEYS', KEYS[1])) do pcall(compare_with, other) end
local known = before and cjson.decode(before)
-- The counter alone would name two openings alike in a Redis that came back with less than it had.
facts.run = known and known.run or text(redis.call('INCR', KEYS[8])) .. '.' .. text(now_ms())
facts.kind = table.concat({string.gsub(facts.halls, ' ', ',') .. '', text(facts.threads),
  text(facts.memory_mb), text(facts.gpus), text(facts.nps), facts.one_node and '1' or '0',
  (string.gsub(facts.boxes, ' ', ','))}, '/')
if known then
  local had = tonumber(redis.call('HGET', KEYS[5], match))
  redis.call('ZREM', KEYS[10], place_in_queue(known, match, had))
end
redis.call('HSET', KEYS[1], match, cjson.encode(facts))
redis.call('HSET', KEYS[2], match, ARGV[3])
if redis.call('HSETNX', KEYS[3], match, ARGV[4]) == 1 then
  redis.call('HSET', KEYS[9], match, ARGV[6])
  redis.call('HSET', KEYS[5], match, text(math.floor((least or 0) * facts.share)))
  redis.call('DEL', KEYS[11])
  for i = 10, #ARGV, 2 do redis.call('ZADD', KEYS[11], ARGV[i], ARGV[i + 1]) end
  deal_again(KEYS[4], KEYS[10], KEYS[1], KEYS[5], match, ARGV[5])
end
queue_match(KEYS[10], KEYS[1], KEYS[5], match)
if last_entry(KEYS[7]) == 0 then
  redis.call('XADD', KEYS[7], text(tonumber(ARGV[6]) + 1) .. '-0', 'v', ARGV[8],
    'kind', 'test_opened', 'at', text(now_ms()), 'by', ARGV[9], 'token', '',
    'data', ARGV[7], 'op', '')
end
redis.call('HSET', KEYS[6], match, text(last_entry(KEYS[7])))
return {'opened'}
