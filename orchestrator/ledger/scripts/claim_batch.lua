-- Lease the next games of a test match to a remote worker, pairs whole where both are new.
--
-- KEYS  1 batches   hash    batch -> lease (JSON)
--       2 due       zset    batch by the end of its lease
--       3 held      hash    access token -> batches with games that are still to be told
--       4 epoch     string  the present epoch
--       5 counter   string  of the tokens of batches
--       6 tests     hash    match -> what claims look at (JSON)
--       7 next      hash    match -> next game
--       8 repeats   zset    '<match> <game>' to deal again
--       9 served    hash    match -> games dealt
--      10 last      hash    match -> last entry of its journal
--      11 mirrored  hash    match -> last entry in its mirror
--      12 queue     zset    matches with games to deal
-- ARGV 1 batch  2 access token  3 worker  4 ttl (ms)  5 most games  6 lead: entries that may
--      wait for the mirror  7 most batches of the access token  8… matches it may play, each with the
--      nodes a second of its base on the worker (0: not known) and the check that is asked of the
--      worker ('': none; '7': beside games; '7!': alone, for it owes one)
-- Reply {'dealt', token, match, run, begun, nps, games}  now, or earlier under the same name
--       {'busy', batches}  it has as many as it may
--       {'not-ready'}      no match has a game for it, or the batch is over

local batch, owner = ARGV[1], ARGV[2]
local epoch, now = current_epoch(KEYS[4]), now_ms()

local raw = redis.call('HGET', KEYS[1], batch)
if raw then
  local lease = cjson.decode(raw)
  if lease.owner ~= owner or lease.games == '' or epoch_of(lease.token) ~= epoch then
    return {'not-ready'}
  end
  return {'dealt', lease.token, lease.match, lease.run, lease.begun, lease.nps or '0',
    lease.games}
end
local held = redis.call('HGET', KEYS[3], owner) or '0'
if tonumber(held) >= tonumber(ARGV[7]) then return {'busy', held} end

local turn, chosen, least, nps, check

local function look_at(i)
  local match = ARGV[i]
  local facts = redis.call('HGET', KEYS[6], match)
  local told = facts and cjson.decode(facts)
  local lead = tonumber(ARGV[6])
  if told and has_game(KEYS[7], KEYS[8], KEYS[10], KEYS[11], match, told, lead, true) then
    local turns = tonumber(redis.call('HGET', KEYS[9], match)) / told.share
    if not turn or told.priority > chosen.priority
        or (told.priority == chosen.priority and turns < least) then
      turn, chosen, least, nps, check = match, told, turns, ARGV[i + 1], ARGV[i + 2]
    end
  elseif told and not has_game(KEYS[7], KEYS[8], KEYS[10], KEYS[11], match, told, lead) then
    -- Lanes have none of it either: it comes back with its next game, or mirrored result.
    local had = tonumber(redis.call('HGET', KEYS[9], match))
    redis.call('ZREM', KEYS[12], place_in_queue(told, match, had))
  end
end

-- A match whose tables are not as its keeper wrote them keeps no other from being played.
for i = 8, #ARGV, 3 do pcall(look_at, i) end
if not turn then return {'not-ready'} end

local number, alone = string.match(check, '^(%d+)(!?)$')
local most = alone == '!' and 0 or tonumber(ARGV[5])
local games = take_games(KEYS[7], KEYS[8], turn, chosen, most, true, true)
count_dealt(KEYS[12], KEYS[9], chosen, turn, #games)
if number then table.insert(games, text(LAST_GAME + tonumber(number))) end

local token = epoch .. '.' .. text(redis.call('INCR', KEYS[5]))
local begun, dealt = text(now), table.concat(games, ' ')
local deadline = text(now + tonumber(ARGV[4]))
redis.call('HSET', KEYS[1], batch, cjson.encode({owner = owner, worker = ARGV[3],
  token = token, match = turn, run = chosen.run, games = dealt, nps = nps, done = '', ttl = ARGV[4],
  begun = begun, deadline = deadline}))
redis.call('ZADD', KEYS[2], deadline, batch)
redis.call('HINCRBY', KEYS[3], owner, 1)
return {'dealt', token, turn, chosen.run, begun, nps, dealt}
