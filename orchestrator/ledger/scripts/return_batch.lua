-- End a batch: its games without a result are dealt again.
--
-- KEYS 1 batches  hash    batch -> lease (JSON)
--      2 due      zset    batch by the end of its lease
--      3 held     hash    access token -> batches with games that are still to be told
--      4 epoch    string  the present epoch
--      5 tests    hash    open matches
--      6 repeats  zset    '<match> <game>' to deal again
--      7 queue    zset    matches with games to deal
--      8 served   hash    match -> games dealt
--      9 refused  hash    access token -> batches that were ended for a result that is wrong
-- ARGV 1 batch  2 access token  3 token  4 '1' when one of its results was refused
-- Reply {'returned', games}  how many are dealt again
--       {'fenced'}           the lease has ended, or is another's

local raw = redis.call('HGET', KEYS[1], ARGV[1])
local lease = raw and cjson.decode(raw)
if not lease or lease.owner ~= ARGV[2] or lease.token ~= ARGV[3]
    or epoch_of(ARGV[3]) ~= current_epoch(KEYS[4]) then
  return {'fenced'}
end
if ARGV[4] == '1' then redis.call('HINCRBY', KEYS[9], lease.owner, 1) end
return {'returned', end_batch(KEYS[1], KEYS[2], KEYS[3], KEYS[5], KEYS[6], KEYS[7], KEYS[8],
  ARGV[1], lease)}
