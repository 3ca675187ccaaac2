-- Raise the epoch: no token of an older one is accepted, and every hall is free.
--
-- KEYS 1 epoch   string  the present epoch
--      2 checked hash    journal -> server; serve compares all journals again
--      3… per hall: slot, offers, orders, ended
-- ARGV 1 epoch   the new one
-- Reply {'epoch', epoch}  the one that stands now; a lower wish changes nothing

local stands = tonumber(current_epoch(KEYS[1]))
if tonumber(ARGV[1]) <= stands then return {'epoch', stands} end
redis.call('SET', KEYS[1], ARGV[1])
for i = 2, #KEYS do redis.call('DEL', KEYS[i]) end
return {'epoch', tonumber(ARGV[1])}
