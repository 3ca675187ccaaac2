-- Append drafts to a journal if its last entry is the expected one, with their effects.
--
-- KEYS 1  journal        stream  the journal
--      2  seasons        list    gets the season with its first entry
--      3  checked        hash    journal -> server in which serve has compared it
--      4… one per effect hash    hold, release: holds; abort: slot; drain, release: drains;
--                                settle: results
-- ARGV 1  expected       last sequence number the writer has seen
--      2  by             who writes
--      3  op             id of this append: same drafts at the same place, same id
--      4  season         '' for a journal that is not a season's
--      5  version        schema version of the entries
--      6  n              number of drafts
--      …  kind, data     n pairs
--      …  verb, name, value   three for each effect
-- Reply {'appended', last}  written now, or earlier by the same append
--       {'stale', last}     nothing written
--       {'unchecked'}       nothing written: serve has not compared it since Redis' start

local expected, op, season, n = tonumber(ARGV[1]), ARGV[3], ARGV[4], tonumber(ARGV[6])
local last = last_entry(KEYS[1])
-- A journal without a mark has no mirror that it could part from: a restore is under way.
if expected > 0 and redis.call('HEXISTS', KEYS[3], season) == 1
    and not is_checked(KEYS[3], season) then
  return {'unchecked'}
end
if last ~= expected then
  local id = text(expected + 1) .. '-0'
  local next_entry = redis.call('XRANGE', KEYS[1], id, id)[1]
  if next_entry and field(next_entry[2], 'op') == op then
    return {'appended', expected + n}
  end
  return {'stale', last}
end

local facts = {}
for i = 1, n do
  facts[i] = {ARGV[5 + 2 * i], ARGV[6 + 2 * i]}
end
last = record_facts(KEYS[1], facts, ARGV[5], ARGV[2], '', op)
wake(KEYS[3], season)
if expected == 0 and season ~= '' then
  redis.call('RPUSH', KEYS[2], season)
  redis.call('HSET', KEYS[3], season, run_id())
end

local at = 7 + 2 * n
for i = 4, #KEYS do
  local verb, name, value = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  if verb == 'release' then
    redis.call('HDEL', KEYS[i], name)
  elseif verb ~= 'abort' then
    redis.call('HSET', KEYS[i], name, value)
  elseif redis.call('HGET', KEYS[i], 'attempt') == name then
    redis.call('HSET', KEYS[i], 'abort', value)
  end
  at = at + 3
end
return {'appended', last}
