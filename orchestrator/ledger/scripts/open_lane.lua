-- Make a lane of a hall known, or change it.
--
-- KEYS 1 hall    hash  host: the one that owns the hall
--      2 halls   set   known halls
--      3 lanes   hash  lane -> what it has (JSON)
--      4 leases  hash  lane -> lease (JSON)
-- ARGV 1 hall  2 lane  3 host  4 what it has (JSON)
-- Reply {'opened'}         it is known, now or already
--       {'foreign', host}
--       {'overlap', lane}  a core or box of it is that lane's, or it plays and would change

local owner = redis.call('HGET', KEYS[1], 'host')
if owner and owner ~= ARGV[3] then return {'foreign', owner} end
-- An earlier version could lease no game at all. Nobody plays under that, and no result ends it;
-- its end (``due``) is dropped by the next claim in the hall.
local lease = redis.call('HGET', KEYS[4], ARGV[2])
if lease and cjson.decode(lease).games == '' then redis.call('HDEL', KEYS[4], ARGV[2]) end
local known = redis.call('HGET', KEYS[3], ARGV[2])
if known == ARGV[4] then return {'opened'} end  -- as each time its worker wakes up
if known and known ~= ARGV[4] and redis.call('HEXISTS', KEYS[4], ARGV[2]) == 1 then
  return {'overlap', ARGV[2]}
end
-- Cores are numbers and boxes names; a lane of an older farm has no boxes.
local function parts(lane)
  local all = lane.cpus
  for _, box in ipairs(lane.boxes or {}) do all[#all + 1] = box end
  return all
end
local mine = {}
for _, part in ipairs(parts(cjson.decode(ARGV[4]))) do mine[part] = true end
local names = redis.call('HKEYS', KEYS[3])
table.sort(names)
for _, name in ipairs(names) do
  local other = cjson.decode(redis.call('HGET', KEYS[3], name))
  for _, part in ipairs(name == ARGV[2] and {} or parts(other)) do
    if mine[part] then return {'overlap', name} end
  end
end
redis.call('HSETNX', KEYS[1], 'host', ARGV[3])
redis.call('SADD', KEYS[2], ARGV[1])
redis.call('HSET', KEYS[3], ARGV[2], ARGV[4])
return {'opened'}
