-- Raise the epoch: no token of an older one is accepted, and every hall is free.
--
-- KEYS 1 epoch   string  the present epoch
--      2 checked hash    journal -> server; serve compares all journals again
--      3… per hall: due, zset of its lanes' leases, which have run out now
--      then per hall: slot, offers, orders, ended
-- ARGV 1 epoch   the new one  2 halls
-- Reply {'epoch', epoch}  the one that stands now; a lower wish changes nothing

local stands = tonumber(current_epoch(KEYS[1]))
if tonumber(ARGV[1]) <= stands then return {'epoch', stands} end
redis.call('SET', KEYS[1], ARGV[1])
redis.call('DEL', KEYS[2])
local halls = tonumber(ARGV[2])
for i = 3, 2 + halls do
  for _, lane in ipairs(redis.call('ZRANGE', KEYS[i], 0, -1)) do
    redis.call('ZADD', KEYS[i], 0, lane)
  end
end
for i = 3 + halls, #KEYS do redis.call('DEL', KEYS[i]) end
return {'epoch', tonumber(ARGV[1])}
