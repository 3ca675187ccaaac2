-- Take a lane for the next game of the test match whose turn it is.
--
-- KEYS  1 slot       hash    the lease of the whole hall
--       2 offers     hash    season -> game that waits for the whole hall
--       3 holds      hash    name -> reason, of the hall
--       4 drains     hash    worker -> reason
--       5 lanes      hash    lane -> what it has (JSON)
--       6 leases     hash    lane -> lease (JSON)
--       7 ended      hash    lane -> '<attempt> <seq>'
--       8 tokens     string  counter of the hall's lanes
--       9 epoch      string  set to 1 by the first claim ever
--      10 tests      hash    match -> what claims look at (JSON)
--      11 next       hash    match -> next game
--      12 again      hash    match -> games to deal again
--      13 served     hash    match -> games dealt
--      14 last       hash    match -> last entry of its journal
--      15 mirrored   hash    match -> last entry in its mirror
-- ARGV 1 hall  2 lane  3 attempt  4 worker  5 host  6 ttl (ms)
--      7 lead: entries that may wait for the mirror  8 reason while an official game waits
-- Reply {'dealt', token, match, game}  now, or earlier by the same attempt
--       {'busy', attempt}  {'held', reason}  {'not-ready'}

local hall, lane, attempt = ARGV[1], ARGV[2], ARGV[3]
redis.call('SETNX', KEYS[9], 1)
local epoch, now = redis.call('GET', KEYS[9]), now_ms()

-- Leases that have run out or are of an older epoch: their games are dealt again.
local flat = redis.call('HGETALL', KEYS[6])
for i = 1, #flat, 2 do
  local lease = cjson.decode(flat[i + 1])
  if lease.attempt == attempt and epoch_of(lease.token) == epoch then
    return {'dealt', lease.token, lease.match, lease.game}
  end
  if tonumber(lease.deadline) < now or epoch_of(lease.token) ~= epoch then
    redis.call('HDEL', KEYS[6], flat[i])
    if still_open(KEYS[10], lease) then
      deal_again(KEYS[12], lease.match, lease.game)
    end
  end
end

local official = redis.call('HGET', KEYS[1], 'attempt')
if official then return {'busy', official} end
if redis.call('HLEN', KEYS[2]) > 0 then return {'held', ARGV[8]} end
local holds = redis.call('HKEYS', KEYS[3])
table.sort(holds)
if holds[1] then
  return {'held', holds[1] .. ': ' .. redis.call('HGET', KEYS[3], holds[1])}
end
local drain = redis.call('HGET', KEYS[4], ARGV[4])
if drain then return {'held', 'drain: ' .. drain} end
local running = redis.call('HGET', KEYS[6], lane)
if running then return {'busy', cjson.decode(running).attempt} end
local known = redis.call('HGET', KEYS[5], lane)
local has = known and cjson.decode(known)
if not has or has.host ~= ARGV[5] then return {'not-ready'} end
-- A late repeat of a claim whose game is over must not begin another one.
local over = redis.call('HGET', KEYS[7], lane)
if over and string.match(over, '^(%S+)') == attempt then return {'not-ready'} end

local function fits(told)
  local here = told.halls == '' or string.find(' ' .. told.halls .. ' ', ' ' .. hall .. ' ', 1, true)
  return here and #has.cpus >= told.threads and has.memory_mb >= told.memory_mb
    and has.gpus >= told.gpus and has.nps >= told.nps and (has.node >= 0 or not told.one_node)
end

local function has_game(match, told)
  local waiting = tonumber(redis.call('HGET', KEYS[14], match))
    - tonumber(redis.call('HGET', KEYS[15], match))
  if waiting > tonumber(ARGV[7]) then return false end
  return redis.call('HGET', KEYS[12], match) ~= ''
    or tonumber(redis.call('HGET', KEYS[11], match)) <= told.games
end

local turn, first, least, run
local matches = redis.call('HKEYS', KEYS[10])
table.sort(matches)
for _, match in ipairs(matches) do
  local told = cjson.decode(redis.call('HGET', KEYS[10], match))
  if fits(told) and has_game(match, told) then
    local turns = tonumber(redis.call('HGET', KEYS[13], match)) / told.share
    if not turn or told.priority > first or (told.priority == first and turns < least) then
      turn, first, least, run = match, told.priority, turns, told.run
    end
  end
end
if not turn then return {'not-ready'} end

local game, rest = string.match(redis.call('HGET', KEYS[12], turn), '^(%d+) ?(.*)$')
if game then
  redis.call('HSET', KEYS[12], turn, rest)
else
  game = redis.call('HGET', KEYS[11], turn)
  redis.call('HINCRBY', KEYS[11], turn, 1)
end
redis.call('HINCRBY', KEYS[13], turn, 1)
local token = epoch .. '.' .. text(redis.call('INCR', KEYS[8]))
redis.call('HSET', KEYS[6], lane, cjson.encode({attempt = attempt, token = token, match = turn,
  game = game, run = run, worker = ARGV[4], host = ARGV[5], ttl = ARGV[6],
  deadline = text(now + tonumber(ARGV[6]))}))
return {'dealt', token, turn, game}
