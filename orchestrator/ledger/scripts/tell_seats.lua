-- Put another answer in the place of one that was not freed.
--
-- KEYS 1 slot    hash    the lease of the attempt's hall
--      2 epoch   string  the present epoch
--      3 answer  string  the box's answer to the attempt
-- ARGV 1 attempt  2 token, or 'trial'  3 answer (JSON)
-- Reply {'told'}
--       {'fenced'}               the attempt is over, or its seats are free

local allowed
if ARGV[2] == 'trial' then
  allowed = redis.call('EXISTS', KEYS[1]) == 0
else
  allowed = may_write(KEYS[1], KEYS[2], ARGV[1], ARGV[2])
end
if not allowed or redis.call('EXISTS', KEYS[3]) == 0 then return {'fenced'} end
redis.call('SET', KEYS[3], ARGV[3])
return {'told'}
