-- Write entries that are facts already (of a mirror) to the end of a journal.
--
-- KEYS 1 journal   stream  the journal
-- ARGV 1 expected  its last sequence number
--      2 n         number of entries
--      …           six for each: v, kind, at, by, token, data
-- Reply {'appended', last}
--       {'stale', last}     nothing written

local last = last_entry(KEYS[1])
if last ~= tonumber(ARGV[1]) then return {'stale', last} end
for i = 1, tonumber(ARGV[2]) do
  local at = 6 * i - 3
  last = last + 1
  redis.call('XADD', KEYS[1], text(last) .. '-0', 'v', ARGV[at], 'kind', ARGV[at + 1],
    'at', ARGV[at + 2], 'by', ARGV[at + 3], 'token', ARGV[at + 4], 'data', ARGV[at + 5],
    'op', '')
end
return {'appended', last}
