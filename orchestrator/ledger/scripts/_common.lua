-- Shared pieces; the loader puts this file in front of every script of the folder.
-- Redis 6.2 subset. Time comes only from TIME; every key a script touches is in KEYS.
-- Replies are arrays: a word, then what belongs to it.

local function now_ms()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

-- Numbers are written in full: Lua's own conversion turns to 1e+14 at 14 digits.
local function text(number)
  return string.format('%.0f', number)
end

-- The value of a field in a flat list: name, value, name, value ...
local function field(flat, name)
  for i = 1, #flat, 2 do
    if flat[i] == name then return flat[i + 1] end
  end
end

-- Sequence number and time of a journal's last entry; 0, 0 where there is none.
local function last_entry(journal)
  local newest = redis.call('XREVRANGE', journal, '+', '-', 'COUNT', 1)[1]
  if not newest then return 0, 0 end
  return tonumber(string.match(newest[1], '^(%d+)')), tonumber(field(newest[2], 'at'))
end

-- Append facts ({kind, data} each) to a journal; answer the last sequence number.
-- Times of entries never go back, even when the host's clock is stepped.
local function record_facts(journal, facts, version, by, token, op)
  local seq, at = last_entry(journal)
  at = text(math.max(at, now_ms()))
  for _, fact in ipairs(facts) do
    seq = seq + 1
    redis.call('XADD', journal, text(seq) .. '-0', 'v', version, 'kind', fact[1], 'at', at,
      'by', by, 'token', token, 'data', fact[2], 'op', op)
  end
  return seq
end

-- What this server process is called: another one after every restart, also of the same data.
local function run_id()
  return string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
end

-- Whether `farm serve` has compared a journal with its mirror since this server was started:
-- one that came back without its last entries must not grow others in their place.
local function is_checked(checked, journal)
  return redis.call('HGET', checked, journal) == run_id()
end

-- A season that is over and wholly archived rests: field 'over <season>', until its journal grows.
local function wake(checked, season)
  redis.call('HDEL', checked, 'over ' .. season)
end

local function epoch_of(token)
  return string.match(token, '^(%d+)%.')
end

local function current_epoch(key)
  return redis.call('GET', key) or '1'
end

-- Whether the slot is held by this attempt under this very token, whatever the epoch.
local function is_holder(slot, attempt, token)
  local held = redis.call('HMGET', slot, 'attempt', 'token')
  return held[1] == attempt and held[2] == token
end

-- Take back a season's offer if it is this game.
local function withdraw_game(offers, orders, season, game)
  if redis.call('HGET', offers, season) == game then
    redis.call('HDEL', offers, season)
    redis.call('HDEL', orders, season)
  end
end

-- The fence: the holder, and no restore since its token was given.
local function may_write(slot, epoch, attempt, token)
  return is_holder(slot, attempt, token) and epoch_of(token) == current_epoch(epoch)
end

-- Whether an attempt may ask a GPU box for seats: its holder, or a trial beside no game.
local function may_ask_box(slot, epoch, attempt, token)
  if token == 'trial' then return redis.call('EXISTS', slot) == 0 end
  return may_write(slot, epoch, attempt, token)
end

-- The attempt that plays a test game in a lane of the hall, under a lease that still runs.
-- The first one answers: leases of an older epoch are due since it was raised.
local function playing_in_lane(leases, due, epoch)
  local names = redis.call('ZREVRANGEBYSCORE', due, '+inf', text(now_ms()))
  for _, name in ipairs(names) do
    local raw = redis.call('HGET', leases, name)
    local lease = raw and cjson.decode(raw)
    if lease and epoch_of(lease.token) == epoch then return lease.attempt end
  end
end

-- Whether a lease's match is open since before its game was dealt: one that was closed
-- and opened again has dealt the game again.
local function still_open(tests, lease)
  local told = redis.call('HGET', tests, lease.match)
  return told and cjson.decode(told).run == lease.run
end

-- Where a match stands in the queue of those that have games to deal. All have score 0, so their
-- bytes order them: matches of one kind (halls, cores, memory ...) side by side, of them a higher
-- priority first, then who has had least for its share, then the name.
local function place_in_queue(told, match, served)
  local least = string.format(' %011.0f %021.6f ', 5e9 - told.priority, served / told.share)
  return told.kind .. least .. match
end

-- Put a match into the queue; one that has a place there keeps it.
local function queue_match(queue, tests, served, match)
  local told = redis.call('HGET', tests, match)
  if not told then return end
  local had = tonumber(redis.call('HGET', served, match))
  redis.call('ZADD', queue, 0, place_in_queue(cjson.decode(told), match, had))
end

-- Count games that were dealt to a match, and give it its new place in the queue.
local function count_dealt(queue, served, told, match, games)
  local had = tonumber(redis.call('HGET', served, match))
  redis.call('ZREM', queue, place_in_queue(told, match, had))
  redis.call('HSET', served, match, text(had + games))
  redis.call('ZADD', queue, 0, place_in_queue(told, match, had + games))
end

-- Games to deal again, lowest first: '<match> <game>' of score 0 each, ordered by their bytes.
local function repeats_of(repeats, match, most)
  return redis.call('ZRANGEBYLEX', repeats, '[' .. match .. ' ', '(' .. match .. '!', 'LIMIT', 0,
    most)
end

-- Give games of a test match back ('3 4'), to be dealt before any new one.
local function deal_again(repeats, queue, tests, served, match, games)
  for game in string.gmatch(games, '%d+') do
    redis.call('ZADD', repeats, 0, match .. string.format(' %012.0f', tonumber(game)))
  end
  queue_match(queue, tests, served, match)
end

-- Numbers above this are checks: to deal again they are for lanes alone.
local LAST_GAME = 10000000

local function is_check(game)
  return tonumber(game) > LAST_GAME
end

-- Whether a match has a game to deal, and no more than so many results wait for its mirror.
-- Remote workers do not see checks that wait for lanes; those come last. Where it has one,
-- ``take_games`` finds it: a lease without a game would be nobody's to end.
local function has_game(next, repeats, last, mirrored, match, told, lead, remote)
  local waiting = tonumber(redis.call('HGET', last, match))
    - tonumber(redis.call('HGET', mirrored, match))
  if waiting > lead then return false end
  if tonumber(redis.call('HGET', next, match)) <= told.games then return true end
  local first = repeats_of(repeats, match, 1)[1]
  return first ~= nil and not (remote and is_check(string.match(first, '(%d+)$')))
end

-- Take a match's next games: what was lost before comes first, then new ones. The second game of a
-- new pair goes with the first, also beyond the most, where pairs are to be whole.
local function take_games(next, repeats, match, told, most, whole, remote)
  local games, listed = {}, repeats_of(repeats, match, most)
  for _, one in ipairs(listed) do
    local game = string.match(one, '(%d+)$')
    if remote and is_check(game) then break end
    redis.call('ZREM', repeats, one)
    table.insert(games, text(tonumber(game)))
  end
  local first = tonumber(redis.call('HGET', next, match))
  local at = first
  while at <= told.games and (#games < most or (whole and at > first and at % 2 == 0)) do
    table.insert(games, text(at))
    at = at + 1
  end
  if at > first then redis.call('HSET', next, match, text(at)) end
  return games
end

-- Forget a remote worker's batch; its games without a result are dealt again, if their match is
-- still open, but for a check: another one is asked of the worker. Answer how many.
local function end_batch(batches, due, held, tests, repeats, queue, served, batch, lease)
  redis.call('HDEL', batches, batch)
  redis.call('ZREM', due, batch)
  if lease.games == '' then return 0 end
  redis.call('HINCRBY', held, lease.owner, -1)
  if not still_open(tests, lease) then return 0 end
  local again = {}
  for game in string.gmatch(lease.games, '%d+') do
    if not is_check(game) then table.insert(again, game) end
  end
  deal_again(repeats, queue, tests, served, lease.match, table.concat(again, ' '))
  return #again
end
