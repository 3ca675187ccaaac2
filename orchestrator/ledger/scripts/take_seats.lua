-- Take GPUs for an attempt and answer its wish; without an answer the wish stands.
--
-- KEYS 1 slot    hash    the lease of the attempt's hall
--      2 epoch   string  the present epoch
--      3 wants   hash    attempt -> request, of the box
--      4 answer  string  the box's answer to the attempt
--      5 gpus    hash    UUID -> 'hall attempt token deadline'
--      6 ...     hash    the lease of each hall that has a GPU, in the order of ARGV
-- ARGV 1 attempt  2 token, or 'trial'  3 hall  4 answer (JSON, or empty)  5 life of a trial (ms)
--      6 count of GPUs, then their UUIDs, then the names of the halls of KEYS 6 ...
-- Reply {'seated'}               now, or earlier by the same attempt
--       {'taken', uuid, hall, attempt}
--       {'stale'}                a GPU has got another holder: read the holders again
--       {'fenced'}

local attempt, token, hall = ARGV[1], ARGV[2], ARGV[3]
if not may_ask_box(KEYS[1], KEYS[2], attempt, token) then return {'fenced'} end

local count = tonumber(ARGV[6])
local slots = {}
for i = 1, #KEYS - 5 do slots[ARGV[6 + count + i]] = KEYS[5 + i] end

local function living(slot, other, its_token, deadline)
  if its_token ~= 'trial' then return is_holder(slot, other, its_token) end
  if token ~= 'trial' then return false end  -- an official game waits for no test
  return redis.call('EXISTS', slot) == 0 and now_ms() < tonumber(deadline)
end

for i = 1, count do
  local uuid = ARGV[6 + i]
  local held = redis.call('HGET', KEYS[5], uuid)
  if held then
    local at, other, its_token, deadline = string.match(held, '^(%S+) (%S+) (%S+) (%S+)$')
    if other ~= attempt then
      if not slots[at] then return {'stale'} end
      if living(slots[at], other, its_token, deadline) then return {'taken', uuid, at, other} end
    end
  end
end

local deadline = text(now_ms() + tonumber(ARGV[5]))
for i = 1, count do
  redis.call('HSET', KEYS[5], ARGV[6 + i],
    hall .. ' ' .. attempt .. ' ' .. token .. ' ' .. deadline)
end
if ARGV[4] ~= '' then
  redis.call('SET', KEYS[4], ARGV[4])
  redis.call('HDEL', KEYS[3], attempt)
end
return {'seated'}
