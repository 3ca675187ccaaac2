-- Write one completed ply under the token.
--
-- KEYS 1 slot   hash    the lease
--      2 epoch  string  the present epoch
--      3 plies  stream  the attempt's plies, ids 0-<ply>
-- ARGV 1 attempt  2 token  3 ply  4 payload  5 first (the attempt's first ply, 0 for any)
-- Reply {'written'}    now, or earlier with the same bytes
--       {'gap', last}  neither the next ply nor a repeat
--       {'fenced'}

if not may_write(KEYS[1], KEYS[2], ARGV[1], ARGV[2]) then return {'fenced'} end
local ply, id = tonumber(ARGV[3]), '0-' .. ARGV[3]
local newest = redis.call('XREVRANGE', KEYS[3], '+', '-', 'COUNT', 1)[1]
local last = newest and tonumber(string.match(newest[1], '%-(%d+)$')) or 0
if newest and ply <= last then
  local written = redis.call('XRANGE', KEYS[3], id, id)[1]
  if written and field(written[2], 'p') == ARGV[4] then return {'written'} end
end
if newest and ply ~= last + 1 then return {'gap', last} end
if not newest and ARGV[5] ~= '0' and ply ~= tonumber(ARGV[5]) then return {'gap', 0} end
redis.call('XADD', KEYS[3], id, 'p', ARGV[4])
return {'written'}
