-- Mark an overdue lease with a chain of looks.
--
-- KEYS 1 slot  hash  the lease
-- ARGV 1 token  2 chain
-- Reply {'suspected'}
--       {'alive'}  not overdue, or not the lease that was meant

local slot = redis.call('HMGET', KEYS[1], 'token', 'deadline')
if slot[1] ~= ARGV[1] or now_ms() <= tonumber(slot[2]) then return {'alive'} end
redis.call('HSET', KEYS[1], 'suspect', ARGV[2])
return {'suspected'}
