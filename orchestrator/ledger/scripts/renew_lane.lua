-- Extend a lane's lease by its own ttl; tell whether its game is still wanted.
--
-- KEYS 1 slot    hash    the lease of the whole hall
--      2 leases  hash    lane -> lease (JSON)
--      3 due     zset    lane by the end of its lease
--      4 epoch   string  the present epoch
--      5 tests   hash    open matches
--      6 drains  hash    worker -> reason
-- ARGV 1 lane  2 attempt  3 token  4 reason when the match is over
-- Reply {'renewed', abort, drain}  each '' where there is no wish
--       {'fenced'}

local raw = redis.call('HGET', KEYS[2], ARGV[1])
local lease = raw and cjson.decode(raw)
if not lease or lease.attempt ~= ARGV[2] or lease.token ~= ARGV[3]
    or epoch_of(ARGV[3]) ~= current_epoch(KEYS[4]) then
  return {'fenced'}
end
-- It had run out, and the whole hall was taken meanwhile: it does not come back.
if redis.call('EXISTS', KEYS[1]) == 1 then return {'fenced'} end
lease.deadline = text(now_ms() + tonumber(lease.ttl))
redis.call('HSET', KEYS[2], ARGV[1], cjson.encode(lease))
redis.call('ZADD', KEYS[3], lease.deadline, ARGV[1])
local wanted = still_open(KEYS[5], lease)
return {'renewed', wanted and '' or ARGV[4], redis.call('HGET', KEYS[6], lease.worker) or ''}
