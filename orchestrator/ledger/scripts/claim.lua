-- Take the hall for an attempt at its ready game.
--
-- KEYS  1 slot          hash    the lease
--       2 hall          hash    host: the one that owns the hall
--       3 halls         set     known halls
--       4 season holds  hash    name -> reason
--       5 hall holds    hash    name -> reason
--       6 drains        hash    worker -> reason
--       7 offers        hash    season -> game
--       8 orders        hash    season -> order
--       9 results       hash    game -> result
--      10 attempts      hash    attempt -> token and worker
--      11 latest        hash    game -> newest attempt
--      12 epoch         string  set to 1 by the first claim ever
--      13 tokens        string  counter of the hall
--      14 journal       stream  the season's
--      15 leases        hash    lane -> lease of a test game (JSON)
--      16 checked       hash    journal -> server in which serve has compared it
--      17 due           zset    lane by the end of its lease
-- ARGV  1 hall  2 season  3 game  4 attempt  5 worker  6 host  7 lane  8 ttl (ms)
--       9 attempt_started (JSON)  10 schema version
-- Reply {'claimed', token, order}  now, or earlier by the same attempt
--       {'foreign', host}  {'busy', attempt}  {'held', reason}  {'not-ready'}
--       {'unchecked'}  serve has not compared the journal since Redis' start

local hall, season, game, attempt = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local worker, host, ttl = ARGV[5], ARGV[6], tonumber(ARGV[8])

-- The hold whose name sorts first: the order of a hash is not ours to rely on.
local function first_hold(key)
  local names = redis.call('HKEYS', key)
  if #names == 0 then return nil end
  table.sort(names)
  return names[1] .. ': ' .. redis.call('HGET', key, names[1])
end

local holder = redis.call('HMGET', KEYS[1], 'attempt', 'token', 'order')
if holder[1] == attempt then return {'claimed', holder[2], holder[3]} end
local owner = redis.call('HGET', KEYS[2], 'host')
if owner and owner ~= host then return {'foreign', owner} end
if not is_checked(KEYS[16], season) then return {'unchecked'} end
if holder[1] then return {'busy', holder[1]} end
local tested = playing_in_lane(KEYS[15], KEYS[17], current_epoch(KEYS[12]))
if tested then return {'busy', tested} end
local hold = first_hold(KEYS[4]) or first_hold(KEYS[5])
if hold then return {'held', hold} end
local drain = redis.call('HGET', KEYS[6], worker)
if drain then return {'held', 'drain: ' .. drain} end
if redis.call('HGET', KEYS[7], season) ~= game then return {'not-ready'} end
if redis.call('HEXISTS', KEYS[9], game) == 1 then return {'not-ready'} end
-- A late repeat of a claim whose attempt is over must not bring it back to life.
if redis.call('HEXISTS', KEYS[10], attempt) == 1 then return {'not-ready'} end

redis.call('HSETNX', KEYS[2], 'host', host)
redis.call('SADD', KEYS[3], hall)
redis.call('SETNX', KEYS[12], 1)
local token = redis.call('GET', KEYS[12]) .. '.' .. text(redis.call('INCR', KEYS[13]))
local order = redis.call('HGET', KEYS[8], season)
redis.call('HSET', KEYS[1], 'season', season, 'game', game, 'attempt', attempt,
  'token', token, 'worker', worker, 'host', host, 'lane', ARGV[7], 'ttl', ARGV[8],
  'deadline', text(now_ms() + ttl), 'ply', 0, 'last_move', 0, 'suspect', '', 'abort', '',
  'order', order)
redis.call('HSET', KEYS[10], attempt, token .. ' ' .. worker)
redis.call('HSET', KEYS[11], game, attempt)
wake(KEYS[16], season)
record_facts(KEYS[14], {{'attempt_started', ARGV[9]}}, ARGV[10], worker, token, '')
return {'claimed', token, order}
