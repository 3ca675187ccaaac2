-- Raise the number of the last mirrored entry of a journal; it never goes back.
-- What its archived attempts have left in Redis goes at the same moment.
--
-- KEYS 1 mirrored  hash  journal -> sequence number
--      2 ...       record and plies of each archived attempt
-- ARGV 1 journal  2 seq
-- Reply {'mirrored', seq}  the number that stands now

local stands = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or '0')
local seq = math.max(stands, tonumber(ARGV[2]))
redis.call('HSET', KEYS[1], ARGV[1], text(seq))
for n = 2, #KEYS do redis.call('DEL', KEYS[n]) end
return {'mirrored', seq}
