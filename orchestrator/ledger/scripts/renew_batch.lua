-- Extend the lease of a batch by its own ttl; tell whether its games are still wanted.
--
-- KEYS 1 batches  hash    batch -> lease (JSON)
--      2 due      zset    batch by the end of its lease
--      3 epoch    string  the present epoch
--      4 tests    hash    open matches
-- ARGV 1 batch  2 access token  3 token  4 reason when the match is over
-- Reply {'renewed', abort, ''}  abort is '' while the games are wanted
--       {'fenced'}              the lease has ended, or is another's

local raw = redis.call('HGET', KEYS[1], ARGV[1])
local lease = raw and cjson.decode(raw)
if not lease or lease.owner ~= ARGV[2] or lease.token ~= ARGV[3]
    or epoch_of(ARGV[3]) ~= current_epoch(KEYS[3]) then
  return {'fenced'}
end
lease.deadline = text(now_ms() + tonumber(lease.ttl))
redis.call('HSET', KEYS[1], ARGV[1], cjson.encode(lease))
redis.call('ZADD', KEYS[2], lease.deadline, ARGV[1])
return {'renewed', still_open(KEYS[4], lease) and '' or ARGV[4], ''}
