-- Journal how a lane's game ended and free the lane; a lost game is dealt again.
--
-- KEYS 1 leases   hash    lane -> lease (JSON)
--      2 ended    hash    lane -> '<attempt> <seq>'
--      3 epoch    string  the present epoch
--      4 tests    hash    open matches
--      5 again    hash    match -> games to deal again
--      6 last     hash    match -> last entry of its journal
--      7 journal  stream  the match's
-- ARGV 1 lane  2 attempt  3 token  4 match  5 game  6 kind  7 data (JSON)
--      8 schema version  9 '1' when the game is lost  10 worker
-- Reply {'recorded', seq}  now, or earlier by the same attempt
--       {'fenced'}         it is another's lane by now, or the match is over

local lane, attempt, match = ARGV[1], ARGV[2], ARGV[4]
local by, seq = string.match(redis.call('HGET', KEYS[2], lane) or '', '^(%S+) (%d+)$')
if by == attempt then return {'recorded', tonumber(seq)} end
local raw = redis.call('HGET', KEYS[1], lane)
local lease = raw and cjson.decode(raw)
if not lease or lease.attempt ~= attempt or lease.token ~= ARGV[3]
    or lease.match ~= match or lease.game ~= ARGV[5]
    or epoch_of(ARGV[3]) ~= current_epoch(KEYS[3]) then
  return {'fenced'}
end
redis.call('HDEL', KEYS[1], lane)
if not still_open(KEYS[4], lease) then return {'fenced'} end
local at = record_facts(KEYS[7], {{ARGV[6], ARGV[7]}}, ARGV[8], ARGV[10], ARGV[3], '')
redis.call('HSET', KEYS[6], match, text(at))
redis.call('HSET', KEYS[2], lane, attempt .. ' ' .. text(at))
if ARGV[9] == '1' then deal_again(KEYS[5], match, lease.game) end
return {'recorded', at}
