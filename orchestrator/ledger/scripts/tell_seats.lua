-- Put another answer in the place of one that was not freed.
--
-- KEYS 1 slot    hash    the lease of the attempt's hall
--      2 epoch   string  the present epoch
--      3 answer  string  the box's answer to the attempt
-- ARGV 1 attempt  2 token, or 'trial'  3 answer (JSON)
-- Reply {'told'}
--       {'fenced'}               the attempt is over, or its seats are free

if not may_ask_box(KEYS[1], KEYS[2], ARGV[1], ARGV[2]) or redis.call('EXISTS', KEYS[3]) == 0 then return {'fenced'} end
redis.call('SET', KEYS[3], ARGV[3])
return {'told'}
