-- Open a hall for a worker; the first host keeps the hall.
--
-- KEYS 1 hall   hash  host, worker
--      2 halls  set   known halls
-- ARGV 1 hall  2 host  3 worker
-- Reply {'opened'}
--       {'foreign', host}  the hall is another host's; nothing done

redis.call('HSETNX', KEYS[1], 'host', ARGV[2])
local host = redis.call('HGET', KEYS[1], 'host')
if host ~= ARGV[2] then return {'foreign', host} end
redis.call('HSET', KEYS[1], 'worker', ARGV[3])
redis.call('SADD', KEYS[2], ARGV[1])
return {'opened'}
