-- Let halls write to a journal that serve has compared with its mirror in this very server.
--
-- KEYS 1 checked  hash  journal -> server in which serve has compared it
-- ARGV 1 journal  2 server (its run id) when the comparison began
-- Reply {'checked'}
--       {'restarted'}  another server answers by now: compare again

if run_id() ~= ARGV[2] then return {'restarted'} end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return {'checked'}
