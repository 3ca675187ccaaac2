-- Journal how a lane's game ended; free the lane, unless it goes on with its next game.
--
-- KEYS  1 slot     hash    the lease of the whole hall
--       2 offers   hash    season -> game that waits for the whole hall
--       3 holds    hash    name -> reason, of the hall
--       4 drains   hash    worker -> reason
--       5 leases   hash    lane -> lease (JSON)
--       6 due      zset    lane by the end of its lease
--       7 ended    hash    lane -> '<attempt> <game> <seq>'
--       8 epoch    string  the present epoch
--       9 tests    hash    open matches
--      10 queue    zset    matches with games to deal
--      11 repeats  zset    '<match> <game>' to deal again
--      12 served   hash    match -> games dealt
--      13 last     hash    match -> last entry of its journal
--      14 journal  stream  the match's
-- ARGV 1 lane  2 attempt  3 token  4 match  5 game  6 kind  7 data (JSON)
--      8 schema version  9 '1' when the game is lost  10 worker  11 '1' when it wants to go on
-- Reply {'recorded', seq, left}  now, or earlier for the same game; left: games of the lease, which
--                                was renewed; '' when the lane is free
--       {'fenced'}               it is another's lane by now, or the match is over

local lane, attempt, match, game = ARGV[1], ARGV[2], ARGV[4], ARGV[5]
local raw = redis.call('HGET', KEYS[5], lane)
local lease = raw and cjson.decode(raw)
local mine = lease and lease.attempt == attempt and lease.token == ARGV[3]
local by, done, seq = string.match(redis.call('HGET', KEYS[7], lane) or '', '^(%S+) (%d+) (%d+)$')
if by == attempt and done == game then
  return {'recorded', tonumber(seq), mine and lease.games or ''}
end
local first, rest = string.match(mine and lease.games or '', '^(%d+) ?(.*)$')
if first ~= game or lease.match ~= match or epoch_of(ARGV[3]) ~= current_epoch(KEYS[8]) then
  return {'fenced'}
end
local open = still_open(KEYS[9], lease)
local at
if open then
  at = record_facts(KEYS[14], {{ARGV[6], ARGV[7]}}, ARGV[8], ARGV[10], ARGV[3], '')
  redis.call('HSET', KEYS[13], match, text(at))
  redis.call('HSET', KEYS[7], lane, attempt .. ' ' .. game .. ' ' .. text(at))
end

-- From the moment an official game waits no lane begins a game, also none that it has leased.
local goes_on = open and ARGV[11] == '1' and rest ~= '' and redis.call('EXISTS', KEYS[1], KEYS[2],
  KEYS[3]) == 0 and redis.call('HEXISTS', KEYS[4], lease.worker) == 0
if goes_on then
  lease.games, lease.deadline = rest, text(now_ms() + tonumber(lease.ttl))
  redis.call('HSET', KEYS[5], lane, cjson.encode(lease))
  redis.call('ZADD', KEYS[6], lease.deadline, lane)
  return {'recorded', at, rest}
end
redis.call('HDEL', KEYS[5], lane)
redis.call('ZREM', KEYS[6], lane)
if not open then return {'fenced'} end
local again = ARGV[9] == '1' and lease.games or rest
if again ~= '' then deal_again(KEYS[11], KEYS[10], KEYS[9], KEYS[12], match, again) end
return {'recorded', at, ''}
