-- Let halls write to a journal that serve has compared with its mirror in this very server.
--
-- KEYS 1 checked  hash    journal -> server in which serve has compared it
--      2 journal  stream  the journal
-- ARGV 1 journal  2 server (its run id) when the comparison began
--      3 last entry of a season that is over and wholly archived, 0 for any other
-- Reply {'checked'}
--       {'restarted'}  another server answers by now: compare again

if run_id() ~= ARGV[2] then return {'restarted'} end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
local over = tonumber(ARGV[3])
if over > 0 and last_entry(KEYS[2]) == over then
  redis.call('HSET', KEYS[1], 'over ' .. ARGV[1], ARGV[3])
end
return {'checked'}
