-- Journal the result of one game of a batch, once.
--
-- KEYS 1 batches  hash    batch -> lease (JSON)
--      2 due      zset    batch by the end of its lease
--      3 held     hash    access token -> batches with games that are still to be told
--      4 epoch    string  the present epoch
--      5 tests    hash    open matches
--      6 last     hash    match -> last entry of its journal
--      7 counted  hash    access token -> games that were counted, without checks
--      8 journal  stream  the match's
-- ARGV 1 batch  2 access token  3 token  4 game  5 kind  6 data (JSON)  7 schema version
-- Reply {'recorded', seq}  now, or earlier for the same batch
--       {'foreign'}        the game is none of the batch's
--       {'fenced'}         the lease has ended or is another's, or the match is over

local batch, owner, game = ARGV[1], ARGV[2], ARGV[4]
local raw = redis.call('HGET', KEYS[1], batch)
local lease = raw and cjson.decode(raw)
if not lease or lease.owner ~= owner or lease.token ~= ARGV[3]
    or epoch_of(ARGV[3]) ~= current_epoch(KEYS[4]) then
  return {'fenced'}
end
local before = string.match(' ' .. lease.done .. ' ', ' ' .. game .. ':(%d+) ')
if before then return {'recorded', tonumber(before)} end
local left, mine = {}, false
for one in string.gmatch(lease.games, '%d+') do
  if one == game then mine = true else table.insert(left, one) end
end
if not mine then return {'foreign'} end
if not still_open(KEYS[5], lease) then return {'fenced'} end

local at = record_facts(KEYS[8], {{ARGV[5], ARGV[6]}}, ARGV[7], lease.worker, ARGV[3], '')
redis.call('HSET', KEYS[6], lease.match, text(at))
if not is_check(game) then redis.call('HINCRBY', KEYS[7], owner, 1) end
lease.games = table.concat(left, ' ')
lease.done = lease.done .. (lease.done == '' and '' or ' ') .. game .. ':' .. text(at)
lease.heard = text(now_ms())
lease.deadline = text(now_ms() + tonumber(lease.ttl))
-- A batch that is over stays until its lease would end: its last answer may be asked for again.
redis.call('HSET', KEYS[1], batch, cjson.encode(lease))
redis.call('ZADD', KEYS[2], lease.deadline, batch)
if #left == 0 then redis.call('HINCRBY', KEYS[3], owner, -1) end
return {'recorded', at}
