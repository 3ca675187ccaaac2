-- Take a lane for the next games of the test match whose turn it is.
--
-- What it costs grows with none of lanes, matches and games to deal again: it looks at its own
-- lane, at leases that have run out, and at the first match of each kind (halls, cores, memory ...).
--
-- KEYS  1 slot       hash    the lease of the whole hall
--       2 offers     hash    season -> game that waits for the whole hall
--       3 holds      hash    name -> reason, of the hall
--       4 drains     hash    worker -> reason
--       5 lanes      hash    lane -> what it has (JSON)
--       6 leases     hash    lane -> lease (JSON)
--       7 due        zset    lane by the end of its lease
--       8 ended      hash    lane -> '<attempt> <game> <seq>'
--       9 tokens     string  counter of the hall's lanes
--      10 epoch      string  set to 1 by the first claim ever
--      11 tests      hash    match -> what claims look at (JSON)
--      12 queue      zset    matches with games to deal (place_in_queue)
--      13 next       hash    match -> next game
--      14 repeats    zset    '<match> <game>' to deal again
--      15 served     hash    match -> games dealt
--      16 last       hash    match -> last entry of its journal
--      17 mirrored   hash    match -> last entry in its mirror
-- ARGV 1 hall  2 lane  3 attempt  4 worker  5 host  6 ttl (ms)
--      7 lead: entries that may wait for the mirror  8 reason while an official game waits
--      9 most games; more than one keep pairs whole  10 most leases of others to end
-- Reply {'dealt', token, match, games, run}  now, or earlier by the same attempt
--       {'busy', attempt}  {'held', reason}  {'not-ready'}

local hall, lane, attempt = ARGV[1], ARGV[2], ARGV[3]
redis.call('SETNX', KEYS[10], 1)
local epoch, now = redis.call('GET', KEYS[10]), now_ms()

-- Leases that have run out or are of an older epoch: their games are dealt again.
local function lapse(name, lease)
  redis.call('HDEL', KEYS[6], name)
  redis.call('ZREM', KEYS[7], name)
  if still_open(KEYS[11], lease) then
    deal_again(KEYS[14], KEYS[12], KEYS[11], KEYS[15], lease.match, lease.games)
  end
end

local own = redis.call('HGET', KEYS[6], lane)
if own then
  local lease = cjson.decode(own)
  local current = epoch_of(lease.token) == epoch
  if lease.attempt == attempt and current then
    return {'dealt', lease.token, lease.match, lease.games, lease.run}
  end
  if tonumber(lease.deadline) < now or not current then lapse(lane, lease) end
end
local over_due = redis.call('ZRANGEBYSCORE', KEYS[7], '-inf', '(' .. text(now), 'LIMIT', 0, ARGV[10])
for _, name in ipairs(over_due) do
  local raw = redis.call('HGET', KEYS[6], name)
  if raw then lapse(name, cjson.decode(raw)) else redis.call('ZREM', KEYS[7], name) end
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
-- A late repeat of a claim whose games are over must not begin others.
local over = redis.call('HGET', KEYS[8], lane)
if over and string.match(over, '^(%S+)') == attempt then return {'not-ready'} end

local boxes = {}
for _, box in ipairs(has.boxes or {}) do boxes[box] = true end

local function fits(told)
  for box in string.gmatch(told.boxes or '', '%S+') do
    if not boxes[box] then return false end
  end
  local here = told.halls == '' or string.find(' ' .. told.halls .. ' ', ' ' .. hall .. ' ', 1, true)
  return here and #has.cpus >= told.threads and has.memory_mb >= told.memory_mb
    and has.gpus >= told.gpus and has.nps >= told.nps and (has.node >= 0 or not told.one_node)
end

local turn, chosen, least

-- Look at the match of a place in the queue: answer where to look next, nothing where it has no
-- game for anybody.
local function look_at(place)
  local match = string.match(place, '(%S+)$')
  local told = cjson.decode(redis.call('HGET', KEYS[11], match))
  if not has_game(KEYS[13], KEYS[14], KEYS[16], KEYS[17], match, told, tonumber(ARGV[7])) then
    return nil
  end
  local turns = tonumber(redis.call('HGET', KEYS[15], match)) / told.share
  if fits(told) and (not turn or told.priority > chosen.priority
      or (told.priority == chosen.priority
        and (turns < least or (turns == least and match < turn)))) then
    turn, chosen, least = match, told, turns
  end
  return '(' .. told.kind .. '!'  -- the first match of the next kind
end

local from = '-'
while true do
  local place = redis.call('ZRANGEBYLEX', KEYS[12], from, '+', 'LIMIT', 0, 1)[1]
  if not place then break end
  -- One whose tables are not as its keeper wrote them keeps no other from being played.
  local read, following = pcall(look_at, place)
  if read and following then
    from = following
  else
    redis.call('ZREM', KEYS[12], place)  -- it comes back with its next game, or mirrored result
  end
end
if not turn then return {'not-ready'} end

local most = tonumber(ARGV[9])
local games = take_games(KEYS[13], KEYS[14], turn, chosen, most, most > 1, false)
count_dealt(KEYS[12], KEYS[15], chosen, turn, #games)
local token, dealt = epoch .. '.' .. text(redis.call('INCR', KEYS[9])), table.concat(games, ' ')
local deadline = text(now + tonumber(ARGV[6]))
redis.call('HSET', KEYS[6], lane, cjson.encode({attempt = attempt, token = token, match = turn,
  games = dealt, run = chosen.run, worker = ARGV[4], host = ARGV[5], ttl = ARGV[6],
  deadline = deadline}))
redis.call('ZADD', KEYS[7], deadline, lane)
return {'dealt', token, turn, dealt, chosen.run}
