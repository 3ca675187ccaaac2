-- Write down what an attempt wants of a GPU box.
--
-- KEYS 1 slot    hash    the lease of the attempt's hall
--      2 epoch   string  the present epoch
--      3 wants   hash    attempt -> request, of the box
--      4 answer  string  the box's answer to the attempt
-- ARGV 1 attempt  2 token, or 'trial'  3 request (JSON)
-- Reply {'wanted'}
--       {'fenced'}

if not may_ask_box(KEYS[1], KEYS[2], ARGV[1], ARGV[2]) then return {'fenced'} end
redis.call('HSET', KEYS[3], ARGV[1], ARGV[3])
redis.call('DEL', KEYS[4])
return {'wanted'}
