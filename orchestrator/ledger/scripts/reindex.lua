-- Write what is kept of a season beside its journal, in place of what stands there.
--
-- KEYS 1 results   hash  game -> '<seq> <attempt>'
--      2 latest    hash  game -> newest attempt
--      3 attempts  hash  attempt -> '<token> <worker>'
--      4 holds     hash  name -> reason
--      5 seasons   list  gets the season if it is not in it
--      6 halls     set   known halls
--      7 mirrored  hash  journal -> sequence number
--      8… per hall: hall (hash), tokens (string), as ARGV 4… name them
-- ARGV 1 season  2 mirrored  3 index (JSON: results, latest, attempts, holds)
--      4… three per hall: name, host, n of its last token
-- Reply {'indexed'}

local function replace(key, fields)
  redis.call('DEL', key)
  for name, value in pairs(fields) do redis.call('HSET', key, name, value) end
end

local index = cjson.decode(ARGV[3])
replace(KEYS[1], index.results)
replace(KEYS[2], index.latest)
replace(KEYS[3], index.attempts)
replace(KEYS[4], index.holds)
local listed = false
for _, season in ipairs(redis.call('LRANGE', KEYS[5], 0, -1)) do
  listed = listed or season == ARGV[1]
end
if not listed then redis.call('RPUSH', KEYS[5], ARGV[1]) end
redis.call('HSET', KEYS[7], ARGV[1], ARGV[2])
local at = 4
for i = 8, #KEYS, 2 do
  redis.call('SADD', KEYS[6], ARGV[at])
  redis.call('HSETNX', KEYS[i], 'host', ARGV[at + 1])
  local n = math.max(tonumber(redis.call('GET', KEYS[i + 1]) or '0'), tonumber(ARGV[at + 2]))
  redis.call('SET', KEYS[i + 1], text(n))
  at = at + 3
end
return {'indexed'}
