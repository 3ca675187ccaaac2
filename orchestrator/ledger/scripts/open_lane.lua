-- Make a lane of a hall known, or change it.
--
-- KEYS 1 hall    hash  host: the one that owns the hall
--      2 halls   set   known halls
--      3 lanes   hash  lane -> what it has (JSON)
--      4 leases  hash  lane -> lease (JSON)
-- ARGV 1 hall  2 lane  3 host  4 what it has (JSON)
-- Reply {'opened'}         it is known, now or already
--       {'foreign', host}
--       {'overlap', lane}  its cores are that lane's, or it plays and would change

local owner = redis.call('HGET', KEYS[1], 'host')
if owner and owner ~= ARGV[3] then return {'foreign', owner} end
local known = redis.call('HGET', KEYS[3], ARGV[2])
if known == ARGV[4] then return {'opened'} end  -- as each time its worker wakes up
if known and known ~= ARGV[4] and redis.call('HEXISTS', KEYS[4], ARGV[2]) == 1 then
  return {'overlap', ARGV[2]}
end
local mine = {}
for _, cpu in ipairs(cjson.decode(ARGV[4]).cpus) do mine[cpu] = true end
local names = redis.call('HKEYS', KEYS[3])
table.sort(names)
for _, name in ipairs(names) do
  local other = cjson.decode(redis.call('HGET', KEYS[3], name))
  for _, cpu in ipairs(name == ARGV[2] and {} or other.cpus) do
    if mine[cpu] then return {'overlap', name} end
  end
end
redis.call('HSETNX', KEYS[1], 'host', ARGV[3])
redis.call('SADD', KEYS[2], ARGV[1])
redis.call('HSET', KEYS[3], ARGV[2], ARGV[4])
return {'opened'}
