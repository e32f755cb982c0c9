-- The steps of src/op.rs where Redis and Valkey keep the records: one call runs a batch of operations, each
-- on a key of its own or the same.
--
-- KEYS[i]  the key of operation i
-- ARGV[1]  the caller's clock in milliseconds, or "" for the server's
-- ARGV[…]  the operations in the order of their keys, those that are the same together: how many, the letter,
--          the arguments, parted by ";"; then, where the key holds a hash of records, a line break and the
--          field's name
--
-- Answers the numbers of every operation as one text: operations parted by ";", numbers by ",", zeros at an
-- operation's end left out, "!" for an operation that was refused. Why it was, and results that were found, are
-- texts of their own: where there are any, the answer is a list of the numbers and these, in order.
--
-- Numbers are doubles here, exact because every policy was accepted only where all sums stay below 2^53.
-- They are always formatted: Lua's own conversion keeps fourteen digits. Rounded quotients can be one too
-- large, never too small.

local call, try, format, match, concat = redis.call, redis.pcall, string.format, string.match, table.concat

local now, one_clock = tonumber(ARGV[1]), false
if not now then
  local time = call('TIME')
  now, one_clock = time[1] * 1000 + math.floor(time[2] / 1000), true
end

local MAX_SAFE = 9007199254740991
-- Whole numbers are faster, where the server's C has them long enough.
local N = format('%d', MAX_SAFE) == '9007199254740991' and '%d' or '%.0f'
local PAIR = N .. ',' .. N

local function floor_div(a, b)
  local quotient = a / b
  quotient = quotient - quotient % 1
  return quotient * b > a and quotient - 1 or quotient
end

local function ceil_div(a, b)
  local quotient = a / b
  quotient = quotient - quotient % 1
  if quotient * b > a then
    return quotient
  end
  return quotient * b < a and quotient + 1 or quotient
end

-- What is answered: of each operation that was run, in order; what has been said in texts; and whether this is a replica.
local replies, texts, operations, readonly = {}, {}, nil, nil

-- ── everything else ────────────────────────────────────────────────────────
-- Made only when an operation needs it: making functions costs more than most operations.

local function all_operations()
  local max, min, fmod = math.max, math.min, math.fmod

  -- What is done and has nothing to tell says so: no reply is empty.
  local DONE = '1'

  -- Numbers in a text, zeros at the end left out.
  local function told(...)
    local numbers, count = { ... }, select('#', ...)
    while count > 0 and numbers[count] == 0 do
      count = count - 1
    end
    for i = 1, count do
      numbers[i] = format(N, numbers[i])
    end
    return concat(numbers, ',', 1, count)
  end

  -- ── limits: src/limit ──────────────────────────────────────────────────────
  -- A state is {level, before, at}. A view is a state as it stands now, with how much of the window has passed,
  -- how far the clock stands behind the state, and whether the state was moved.

  local function view_at(level, before, at, elapsed, behind, rebased)
    return { level = level, before = before, at = at, elapsed = elapsed, behind = behind, rebased = rebased }
  end

  -- src/limit/share.rs: how long a delta may be on its way, what a bucket holds at most, how many tiers' numbers
  -- are remembered, and what part of what is left a share may be.
  local ON_THE_WAY, MOST_DEBT, MOST_ADDERS, SHARES = 60000, 4503599627370496, 64, 8

  local Bucket, Fixed, Sliding = {}, {}, {}
  Bucket.__index, Fixed.__index, Sliding.__index = Bucket, Fixed, Sliding

  function Bucket:view(level, before, at)
    local behind = at - now
    if behind <= 0 then
      return view_at(max(0, level + behind * self.rate), 0, now, 0, 0, false)
    end
    if behind > self.drain and one_clock then
      return view_at(level, 0, now, 0, 0, true)
    end
    return view_at(level, 0, at, 0, behind, false)
  end

  function Bucket:fits(view, cost)
    return cost <= self.capacity and view.level + cost * self.window <= self.full
  end

  function Bucket:charge(view, cost)
    view.level = view.level + cost * self.window
  end

  function Bucket:refund(view, cost)
    view.level = max(0, view.level - cost * self.window)
  end

  function Bucket:remaining(view)
    return floor_div(max(0, self.full - view.level), self.window)
  end

  function Bucket:retry(view, cost)
    return ceil_div(view.level + cost * self.window - self.full, self.rate) + view.behind
  end

  function Bucket:reset(view)
    return view.level == 0 and 0 or ceil_div(view.level, self.rate) + view.behind
  end

  function Bucket:used(view)
    return ceil_div(view.level, self.window)
  end

  function Bucket:taken_over(used, _, _, at)
    return used * self.window, 0, at
  end

  -- What a tier may spend from now on counts for so long, and its deltas for so long.
  function Bucket:holds_for()
    return self.drain
  end

  function Bucket:adds_for()
    return self.drain + ON_THE_WAY
  end

  function Bucket:add(view, units, span)
    view.level = min(MOST_DEBT, view.level + units * self.window)
    return now - span <= self:adds_for()
  end

  function Bucket:give_back(view, units, span)
    if span <= view.at then
      view.level = max(0, view.level - max(0, units * self.window - (view.at - span) * self.rate))
    end
  end

  function Fixed:view(level, before, at)
    local behind = at - now
    if level == 0 or -behind >= self.window then
      return view_at(0, 0, now, 0, 0, false)
    end
    if behind > self.window and one_clock then
      return view_at(level, 0, now, 0, 0, true)
    end
    return view_at(level, 0, at, max(0, -behind), max(0, behind), false)
  end

  function Fixed:fits(view, cost)
    return cost <= self.capacity - view.level
  end

  function Fixed:charge(view, cost)
    view.level = view.level + cost
  end

  function Fixed:refund(view, cost)
    view.level = max(0, view.level - cost)
  end

  function Fixed:remaining(view)
    return max(0, self.capacity - view.level)
  end

  function Fixed:reset(view)
    return view.level == 0 and 0 or self.window - view.elapsed + view.behind
  end

  function Fixed:retry(view)
    return self:reset(view)
  end

  function Fixed:used(view)
    return view.level
  end

  function Fixed:taken_over(used, old, view, at)
    local open = max(0, at - view.at) < self.window
    return used, 0, (old.kind == 'f' and open) and view.at or at
  end

  function Fixed:holds_for(view)
    return self.window - view.elapsed + view.behind
  end

  function Fixed:adds_for()
    return self.window
  end

  function Fixed:add(view, units, span)
    view.at = view.level == 0 and min(span, now) or view.at
    view.level = min(MAX_SAFE, view.level + units)
    return now - span < self.window
  end

  function Fixed:give_back(view, units, span)
    if view.at == span then
      self:refund(view, units)
    end
  end

  function Sliding:view(level, before, at)
    local window = self.window
    local into = fmod(now, window)
    local start = now - into
    if level == 0 and before == 0 then
      return view_at(0, 0, start, into, 0, false)
    end
    local behind = at - now
    if behind > window and one_clock then
      return view_at(level, before, start, into, 0, true)
    end
    if behind > 0 then
      return view_at(level, before, at, 0, behind, false)
    end
    local passed = start - at
    if passed == 0 then
      return view_at(level, before, start, into, 0, false)
    elseif passed <= window then
      return view_at(0, level, start, into, 0, false)
    end
    return view_at(0, 0, start, into, 0, false)
  end

  function Sliding:weight(view)
    return view.before * (self.window - view.elapsed) + view.level * self.window
  end

  function Sliding:fits(view, cost)
    return cost <= self.capacity and self:weight(view) + cost * self.window <= self.full
  end

  function Sliding:charge(view, cost)
    view.level = view.level + cost
  end

  function Sliding:refund(view, cost)
    local rest = max(0, cost - view.level)
    view.level = max(0, view.level - cost)
    view.before = max(0, view.before - rest)
  end

  function Sliding:remaining(view)
    return floor_div(max(0, self.full - self:weight(view)), self.window)
  end

  local function weighs_out(window, room, count)
    return max(0, window - (count == 0 and window or floor_div(room, count)))
  end

  function Sliding:retry(view, cost)
    local room = self.capacity - view.level - cost
    local wait
    if room >= 0 then
      wait = max(0, weighs_out(self.window, room * self.window, view.before) - view.elapsed)
    else
      wait = self.window - view.elapsed + weighs_out(self.window, (self.capacity - cost) * self.window, view.level)
    end
    return wait + view.behind
  end

  function Sliding:reset(view)
    local left = self.window - view.elapsed + view.behind
    if view.level > 0 then
      return left + self.window
    end
    return view.before > 0 and left or 0
  end

  function Sliding:used(view)
    return ceil_div(self:weight(view), self.window)
  end

  function Sliding:taken_over(used, _, _, at)
    return used, 0, at - fmod(at, self.window)
  end

  Sliding.holds_for = Fixed.holds_for

  function Sliding:adds_for()
    return self.window * 2
  end

  -- The count of the window that begins at `span`; nil where it weighs nothing any more.
  function Sliding:counted_in(view, span)
    local age = max(0, view.at - span)
    return age == 0 and 'level' or age <= self.window and 'before' or nil
  end

  function Sliding:add(view, units, span)
    local count = self:counted_in(view, span)
    if count then
      view[count] = min(floor_div(MOST_DEBT / 2, self.window), view[count] + units)
    end
    return count ~= nil
  end

  function Sliding:give_back(view, units, span)
    local count = self:counted_in(view, span)
    if count then
      view[count] = max(0, view[count] - units)
    end
  end

  local shapes = {}

  -- The arithmetic of "b,rate,window,burst", "f,limit,window" or "s,limit,window".
  local function shape_of(text)
    local known = shapes[text]
    if known then
      return known
    end
    local kind, a, window, c = text:match('^([bfs]),(%d+),(%d+),?(%d*)$')
    a, window = tonumber(a), tonumber(window)
    local shape
    if kind == 'b' then
      local burst = tonumber(c)
      local full = burst * window
      shape = { rate = a, window = window, capacity = burst, full = full, drain = ceil_div(full, a) }
      setmetatable(shape, Bucket)
    else
      shape = { window = window, capacity = a, full = a * window }
      setmetatable(shape, kind == 'f' and Fixed or Sliding)
    end
    shape.kind, shape.form = kind, text .. ',' .. (kind == 's' and PAIR .. ',' .. N or PAIR)
    shapes[text] = shape
    return shape
  end

  -- A limit's state: "b,rate,window,burst,debt,at", "f,limit,window,count,start" or "s,limit,window,before,count,start".
  local function state_text(shape, state)
    if shape.kind == 's' then
      return format(shape.form, state.before, state.level, state.at)
    end
    return format(shape.form, state.level, state.at)
  end

  -- What is thrown is the reply of this operation alone, and is thrown before anything is written.
  local function refuse(why)
    error({ err = why })
  end

  -- One limit of a record: "name=b,rate,window,burst,debt,at" and its like; nil for what is not ours.
  local function entry_of(text)
    local name, kind, numbers = text:match('^([%w~._-]+)=([bfs]),([%d,]+)$')
    if not name then
      return nil
    end
    local shape, a, b, c
    if kind == 'f' then
      shape, a, b = numbers:match('^(%d+,%d+),(%d+),(%d+)$')
      return shape and { name = name, shape = shape_of('f,' .. shape), level = tonumber(a), before = 0, at = tonumber(b) }
    elseif kind == 'b' then
      shape, a, b = numbers:match('^(%d+,%d+,%d+),(%d+),(%d+)$')
      return shape and { name = name, shape = shape_of('b,' .. shape), level = tonumber(a), before = 0, at = tonumber(b) }
    end
    shape, a, b, c = numbers:match('^(%d+,%d+),(%d+),(%d+),(%d+)$')
    return shape
      and { name = name, shape = shape_of('s,' .. shape), level = tonumber(b), before = tonumber(a), at = tonumber(c) }
  end

  -- {ends, then tiers and the newest number of each}
  local function adders_of(text)
    local adders = {}
    for number in text:gmatch('%d+') do
      adders[#adders + 1] = tonumber(number)
    end
    return #adders % 2 == 1 and adders or refuse('corrupt')
  end

  -- {block = {ends, duration} or nil, adders = {...} or nil, entries = {...}}
  local function limits_of(text)
    local record = { entries = {} }
    if not text then
      return record
    end
    if not text:match('^1l[|.]') or text:sub(-1) ~= '.' then
      refuse('corrupt')
    end
    for part in text:sub(3, -2):gmatch('|([^|]*)') do
      local ends, duration = part:match('^b(%d+),(%d+)$')
      local adders = part:match('^a([%d,]+)$')
      if ends then
        record.block = { ends = tonumber(ends), duration = tonumber(duration) }
      elseif adders then
        record.adders = adders_of(adders)
      else
        record.entries[#record.entries + 1] = entry_of(part) or refuse('corrupt')
      end
    end
    return record
  end

  local function view_of(entry, shape)
    if entry.shape == shape then
      return shape:view(entry.level, entry.before, entry.at)
    end
    local old = entry.shape:view(entry.level, entry.before, entry.at)
    local used = min(entry.shape:used(old), shape.capacity)
    local view = shape:view(shape:taken_over(used, entry.shape, old, now + old.behind))
    view.rebased = used > 0
    return view
  end

  local function block_left(block)
    if not block then
      return 0
    end
    local left = max(0, block.ends - now)
    return (left > block.duration * 2 and one_clock) and block.duration or left
  end

  local seats_known = {}

  -- The limits of an operation: "name=b,rate,window,burst|…".
  local function seats_of(text)
    local known = seats_known[text]
    if not known then
      known = {}
      for name, shape in text:gmatch('([^=|]+)=([^|]+)') do
        known[#known + 1] = { name = name, shape = shape_of(shape) }
      end
      seats_known[text] = known
    end
    return known
  end

  local function find(entries, name)
    for i = 1, #entries do
      if entries[i].name == name then
        return entries[i]
      end
    end
  end

  local function views_of(record, limits)
    local views = {}
    for i = 1, #limits do
      local limit = limits[i]
      local entry = find(record.entries, limit.name)
      views[i] = entry and view_of(entry, limit.shape) or limit.shape:view(0, 0, 0)
    end
    return views
  end

  -- Remaining, reset wait, retry wait, reason, which limit decided.
  local function decision(limits, views, cost, admitted, blocked)
    local by, remaining, retry, reset = 1, MAX_SAFE, 0, blocked
    for i = 1, #limits do
      local shape, view = limits[i].shape, views[i]
      local left, wait = shape:remaining(view), 0
      if not admitted then
        if cost > shape.capacity then
          wait = -1
        elseif not shape:fits(view, cost) then
          wait = shape:retry(view, cost)
        end
      end
      local names = i == 1
      if not names and admitted then
        names = left < remaining
      elseif not names then
        names = retry ~= -1 and (wait == -1 or wait > retry)
      end
      if names then
        by, retry = i, wait
      end
      remaining, reset = min(remaining, left), max(reset, shape:reset(view))
    end
    local reason = admitted and 0 or (retry == -1 and 2 or 1)
    if blocked > 0 then
      remaining = 0
      if retry ~= -1 then
        reason, retry, by = 3, max(retry, blocked), 1
      end
    end
    return { remaining, reset, max(0, retry), reason, by - 1 }
  end

  -- Takes over the views that `wanted` names, and drops what is whole again.
  local function keep(record, limits, views, wanted)
    local kept = false
    for i = 1, #limits do
      if wanted(views[i]) then
        kept = true
        local entry = find(record.entries, limits[i].name)
        if not entry then
          entry = { name = limits[i].name }
          record.entries[#record.entries + 1] = entry
        end
        local view = views[i]
        entry.shape, entry.level, entry.before, entry.at = limits[i].shape, view.level, view.before, view.at
      end
    end
    return kept
  end

  local function prune(record)
    local entries, kept = record.entries, {}
    for i = 1, #entries do
      local entry = entries[i]
      local view = entry.shape:view(entry.level, entry.before, entry.at)
      if entry.shape:reset(view) > 0 then
        kept[#kept + 1] = entry
      end
    end
    record.entries = kept
    if record.adders and record.adders[1] <= now then
      record.adders = nil
    end
    local left = block_left(record.block)
    if record.block then
      record.block = left > 0 and { ends = now + left, duration = record.block.duration } or nil
    end
  end

  -- When a state, left alone, is whole.
  local function whole_at(entry)
    local shape, caller = entry.shape, one_clock
    local really
    really, now, one_clock = now, entry.at, false
    local reset = shape:reset(shape:view(entry.level, entry.before, entry.at))
    now, one_clock = really, caller
    return entry.at + reset
  end

  -- Where the operation's record is, if its key holds a hash of them.
  local field

  local function get(key)
    if field then
      return call('HGET', key, field)
    end
    return call('GET', key)
  end

  local function delete(key)
    if field then
      call('HDEL', key, field)
    else
      call('DEL', key)
    end
  end

  -- What is over leaves a hash that has doubled. (Only what whole hashes are made of: see ops.I and ops.F.)
  local function sweep(key)
    local records = call('HGETALL', key)
    for i = 1, #records, 2 do
      local window, start = records[i + 1]:match('^1l|[^|]+=f,%d+,(%d+),%d+,(%d+)%.$')
      local at = window and window + start or records[i + 1]:match('^1d||(%d+)||%.$')
      if at and tonumber(at) <= now then
        call('HDEL', key, records[i])
      end
    end
  end

  -- A hash lives as long as the longest of its records.
  local function put_field(key, text, ms)
    local is_new = call('HSET', key, field, text) == 1
    if call('PTTL', key) < ms then
      local px = format(N, ms)
      local kept = try('PEXPIRE', key, px)
      -- Where this may not be done, nothing is left without an end.
      if type(kept) == 'table' then
        call('HDEL', key, field)
        error(kept)
      end
    end
    local size = is_new and call('HLEN', key) or 0
    if size >= 64 and math.frexp(size) == 0.5 then
      sweep(key)
    end
  end

  -- Stores a record for as long as anything of it counts; nothing that counts is a record that goes.
  local function put(key, text, over_at)
    if over_at <= now then
      delete(key)
    elseif field then
      put_field(key, text, over_at - now)
    else
      local px = format(N, over_at - now)
      call('SET', key, text, 'PX', px)
    end
  end

  local function put_limits(key, record)
    local parts, over_at = { '1l' }, 0
    if record.block then
      parts[2] = format('b%.0f,%.0f', record.block.ends, record.block.duration)
      over_at = record.block.ends
    end
    local most = 512
    if record.adders then
      local adders = {}
      for i = 1, #record.adders do
        adders[i] = format(N, record.adders[i])
      end
      local text = 'a' .. concat(adders, ',')
      parts[#parts + 1] = text
      most = most + #text + 1
      over_at = max(over_at, record.adders[1])
    end
    for i = 1, #record.entries do
      local entry = record.entries[i]
      parts[#parts + 1] = entry.name .. '=' .. state_text(entry.shape, entry)
      over_at = max(over_at, whole_at(entry))
    end
    local text = concat(parts, '|') .. '.'
    if #record.entries > 8 or #text > most then
      refuse('too many limits')
    end
    put(key, text, over_at)
  end

  -- A key that somebody left without a time to live gets one, so that nothing stays for ever.
  local function heal(key, record)
    if call('PTTL', key) == -1 then
      put_limits(key, record)
    end
  end

  local ops = {}

  local function always()
    return true
  end

  local function is_rebased(view)
    return view.rebased
  end

  -- Decides on the record, and charges it. Answers the decision, whether it admits, and whether the record changed.
  local function decide(record, limits, cost, charges)
    local views = views_of(record, limits)
    local blocked = block_left(record.block)
    local admitted = blocked == 0
    for i = 1, #limits do
      admitted = admitted and limits[i].shape:fits(views[i], cost)
    end
    if charges and admitted then
      for i = 1, #limits do
        limits[i].shape:charge(views[i], cost)
      end
    end
    local numbers = decision(limits, views, cost, admitted, blocked)
    if not charges then
      return numbers
    end
    local changed = keep(record, limits, views, admitted and always or is_rebased)
    changed = changed or (record.block ~= nil and now + blocked < record.block.ends)
    if changed then
      prune(record)
    end
    return numbers, admitted, changed
  end

  local function get_limits(key)
    local text = get(key)
    return limits_of(text), text
  end

  local function store(key, record, found, changed)
    if changed then
      put_limits(key, record)
    elseif found then
      heal(key, record)
    end
  end

  function ops.C(key, cost, text)
    local record, found = get_limits(key)
    local numbers, _, changed = decide(record, seats_of(text), tonumber(cost), true)
    store(key, record, found, changed)
    return told(unpack(numbers))
  end

  function ops.P(key, cost, text)
    return told(unpack((decide(get_limits(key), seats_of(text), tonumber(cost), false))))
  end

  -- A decision, and after it what a tier may decide by.
  local function share(record, limits, numbers, granted)
    local shape, view = limits[1].shape, views_of(record, limits)[1]
    local span = shape.kind == 'b' and now or view.at
    local remaining, reset, retry, reason, by = unpack(numbers)
    local holds = shape:holds_for(view)
    return told(remaining, reset, retry, reason, by, granted, span, holds, view.level, view.before, view.at, now)
  end

  local function only_seat(text)
    local limits = seats_of(text)
    return #limits == 1 and limits or refuse('a tier decides on one limit')
  end

  -- Consumes, and takes up to `units` more for a tier to spend.
  function ops.V(key, cost, text, units)
    local limits, record, found = only_seat(text), get_limits(key)
    local numbers, admitted, changed = decide(record, limits, tonumber(cost), true)
    local granted = admitted and min(tonumber(units), floor_div(numbers[1], SHARES)) or 0
    if granted > 0 then
      local _, _, charged = decide(record, limits, granted, true)
      changed = changed or charged
    end
    store(key, record, found, changed)
    return share(record, limits, numbers, granted)
  end

  local function delta_of(text)
    local node, seq, units, span = text:match('^(%d+),(%d+),(%d+),(%d+)$')
    return node and { node = tonumber(node), seq = tonumber(seq), units = tonumber(units), span = tonumber(span) }
  end

  local function has_counted(adders, delta)
    for i = 2, adders and adders[1] > now and #adders or 0, 2 do
      if adders[i] == delta.node and adders[i + 1] >= delta.seq then
        return true
      end
    end
    return false
  end

  -- The tier that was heard of last stands at the end.
  local function note(adders, delta, ends)
    local noted = { max(adders and adders[1] or 0, ends) }
    for i = 2, adders and #adders or 0, 2 do
      if adders[i] ~= delta.node then
        noted[#noted + 1], noted[#noted + 2] = adders[i], adders[i + 1]
      end
    end
    if #noted > MOST_ADDERS * 2 then
      table.remove(noted, 2)
      table.remove(noted, 2)
    end
    noted[#noted + 1], noted[#noted + 2] = delta.node, delta.seq
    return noted
  end

  -- Changes the limit's state once per delta, and remembers that it did. Answers whether it did.
  local function apply(record, limits, delta, change)
    if has_counted(record.adders, delta) then
      return false
    end
    local views, shape = views_of(record, limits), limits[1].shape
    if not change(shape, views[1]) then
      return false
    end
    keep(record, limits, views, always)
    local ends = min(MAX_SAFE, max(now, delta.span) + shape:adds_for())
    record.adders = note(record.adders, delta, ends)
    prune(record)
    return true
  end

  -- Adds what a tier has admitted already, then consumes.
  function ops.A(key, cost, text, delta)
    local limits, record, found = only_seat(text), get_limits(key)
    delta = delta_of(delta)
    local added = delta and apply(record, limits, delta, function(shape, view)
      return shape:add(view, delta.units, delta.span)
    end)
    local numbers, _, changed = decide(record, limits, tonumber(cost), true)
    store(key, record, found, added or changed)
    return share(record, limits, numbers, 0)
  end

  -- Takes back what a tier did not spend, as far as it still counts.
  function ops.Y(key, _, text, delta)
    local limits, record = only_seat(text), get_limits(key)
    local entry = find(record.entries, limits[1].name)
    delta = delta_of(delta)
    local known = entry and entry.shape == limits[1].shape
    if known and apply(record, limits, delta, function(shape, view)
      local level, before = view.level, view.before
      shape:give_back(view, delta.units, delta.span)
      return view.level ~= level or view.before ~= before
    end) then
      put_limits(key, record)
    end
    return DONE
  end

  function ops.R(key, cost, text)
    local record, found = get_limits(key)
    if not found then
      return DONE
    end
    local limits, known, views = seats_of(text), {}, {}
    local all = views_of(record, limits)
    for i = 1, #limits do
      limits[i].shape:refund(all[i], tonumber(cost))
      if find(record.entries, limits[i].name) then
        known[#known + 1], views[#views + 1] = limits[i], all[i]
      end
    end
    keep(record, known, views, always)
    prune(record)
    put_limits(key, record)
    return DONE
  end

  function ops.B(key, duration)
    local record = get_limits(key)
    record.block = { ends = min(MAX_SAFE, now + tonumber(duration)), duration = tonumber(duration) }
    prune(record)
    put_limits(key, record)
    return DONE
  end

  function ops.U(key)
    local record, found = get_limits(key)
    if found and record.block then
      record.block = nil
      put_limits(key, record)
    end
    return DONE
  end

  function ops.X(key, _, text)
    local record, found = get_limits(key)
    if found then
      local limits, kept = seats_of(text), {}
      for i = 1, #record.entries do
        if not find(limits, record.entries[i].name) then
          kept[#kept + 1] = record.entries[i]
        end
      end
      record.block, record.entries = nil, kept
      put_limits(key, record)
    end
    return DONE
  end

  -- ── Arkos' counters ────────────────────────────────────────────────────────

  -- Counts a hit, whatever the count. Answers it, when the window is over, and what time it is.
  function ops.I(key, window)
    local record = get_limits(key)
    local _, _, changed = decide(record, seats_of(format('default=f,%.0f,%s', MAX_SAFE, window)), 1, true)
    store(key, record, false, changed)
    local counter = record.entries[1]
    return told(counter.level, counter.at + window, now)
  end

  -- Forgets a whole hash.
  function ops.Z(key)
    call('DEL', key)
    return DONE
  end

  -- ── message ids: src/dedup.rs ──────────────────────────────────────────────
  -- {kind = 'c' or 'd', token, at, payload, result}

  local YES, NO, ABSENT, FRESH, MISMATCH, IN_PROGRESS, DUPLICATE = '1', '2', '3', '4', '5', 6, '7'

  -- A key that somebody left without a time to live gets one.
  local function heal_message(key, at)
    if not field and call('PTTL', key) == -1 then
      call('PEXPIRE', key, format(N, max(1, at - now)))
    end
  end

  -- What is known of an id. What is over is not known, whether or not the server has dropped it.
  local function message_of(key)
    local text = get(key)
    if not text then
      return nil
    end
    local kind, token, at, payload, result = 'c', text:match('^1c|([%w_-]+)|(%d+)|([%w_-]*)%.$')
    if not token then
      kind, token, at, payload, result = 'd', text:match('^1d|([%w_-]*)|(%d+)|([%w_-]*)|(.*)%.$')
    end
    if not token then
      refuse('corrupt')
    end
    at = tonumber(at)
    heal_message(key, at)
    return now < at and { kind = kind, token = token, at = at, payload = payload, result = result } or nil
  end

  local function put_claim(key, token, lease, payload)
    local at = now + tonumber(lease)
    put(key, format('1c|%s|%.0f|%s.', token, at, payload), at)
  end

  local function put_done(key, token, ttl, payload, result)
    local at = now + tonumber(ttl)
    put(key, format('1d|%s|%.0f|%s|', token, at, payload) .. result .. '.', at)
  end

  -- What stands in the way of a claim; nil when nothing does.
  local function obstacle(message, payload)
    if not message then
      return nil
    end
    if payload ~= '' and message.payload ~= '' and payload ~= message.payload then
      return MISMATCH
    elseif message.kind == 'c' then
      return told(IN_PROGRESS, message.at - now)
    end
    return DUPLICATE, message.result
  end

  -- Whether the token's holder may still decide about the id.
  local function held(message, token)
    return not message or (message.kind == 'c' and message.token == token)
  end

  local function flag(yes)
    return yes and YES or NO
  end

  function ops.F(key, ttl)
    local message = message_of(key)
    local free = not obstacle(message, '')
    if free then
      put_done(key, '', ttl, '', '')
    end
    return flag(free)
  end

  function ops.L(key)
    local message = message_of(key)
    if message then
      return obstacle(message, '')
    end
    return ABSENT
  end

  function ops.K(key, token, lease, payload)
    local message = message_of(key)
    local found, result = obstacle(message, payload)
    local again = message and message.kind == 'c' and message.token == token
    if found and (not again or found == MISMATCH) then
      return found, result
    end
    put_claim(key, token, lease, payload)
    return FRESH
  end

  -- Claims where the decision before it in this call admits, else looks.
  function ops.H(key, ...)
    local before = replies[#replies]
    local admits = before and before ~= '!' and not match(before, '^[^,]*,[^,]*,[^,]*,[1-9]')
    return ops[admits and 'K' or 'L'](key, ...)
  end

  function ops.W(key, token, lease, payload)
    local message = message_of(key)
    local renewed = not (message and message.kind == 'd') and held(message, token)
    if renewed then
      put_claim(key, token, lease, payload)
    end
    return flag(renewed)
  end

  function ops.D(key, token, ttl, payload, result)
    local message = message_of(key)
    if message and message.kind == 'd' and message.token == token then
      return flag(true)
    end
    local mine = held(message, token)
    if mine then
      put_done(key, token, ttl, payload, result)
    end
    return flag(mine)
  end

  function ops.E(key, token)
    local message = message_of(key)
    local mine = held(message, token)
    if mine and message then
      delete(key)
    end
    return flag(mine)
  end

  function ops.G(key)
    local message = message_of(key)
    if message then
      delete(key)
    end
    return flag(message)
  end

  function ops.S(key, ttl)
    message_of(key)
    put_done(key, '', ttl, '', '')
    return flag(true)
  end

  -- ── bursts: src/burst.rs ───────────────────────────────────────────────────

  local function burst_of(text, policy)
    if not text then
      return { trigger = policy.trigger, window = policy.window, bucket = policy.bucket, fired = 0, quiet = 0, nonce = '', counts = { 0 } }
    end
    local trigger, window, bucket, fired, quiet, nonce, counts =
      text:match('^1([ts])|(%d+),(%d+),(%d+),(%d+)|([%w_-]*)|([%d,]+)%.$')
    if not trigger then
      refuse('corrupt')
    end
    local burst = {
      trigger = trigger,
      window = tonumber(window),
      bucket = tonumber(bucket),
      fired = tonumber(fired),
      quiet = tonumber(quiet),
      nonce = nonce,
      counts = {},
    }
    for count in counts:gmatch('%d+') do
      burst.counts[#burst.counts + 1] = tonumber(count)
    end
    return burst
  end

  -- When nothing of it counts any more.
  local function over_at(burst)
    local parts = burst.trigger == 't' and 1 or 16
    return max(ceil_div((burst.bucket + 1) * burst.window, parts) + 2 * burst.window, burst.quiet)
  end

  local function advance(burst, policy)
    if burst.window ~= policy.window or burst.trigger ~= policy.trigger then
      burst.window, burst.trigger, burst.bucket = policy.window, policy.trigger, policy.bucket
      burst.counts, burst.fired = { 0 }, 0
    end
    if burst.bucket - policy.bucket > policy.parts and one_clock then
      burst.fired = burst.fired == burst.bucket + 1 and policy.bucket + 1 or burst.fired
      burst.bucket = policy.bucket
      burst.quiet = min(burst.quiet, now + policy.rest)
    end
    for _ = 1, min(policy.bucket - burst.bucket, policy.span) do
      table.insert(burst.counts, 1, 0)
    end
    burst.bucket = max(burst.bucket, policy.bucket)
    while #burst.counts > policy.span do
      table.remove(burst.counts)
    end
  end

  local function counted(burst)
    local sum = 0
    for i = 1, #burst.counts do
      sum = min(MAX_SAFE, sum + burst.counts[i])
    end
    return sum
  end

  local function observed(burst, policy, fired, replay)
    local oldest = 1
    for i = 1, #burst.counts do
      if burst.counts[i] > 0 then
        oldest = i
      end
    end
    local leaves = max(0, burst.bucket - (oldest - 1)) + policy.span
    local ends = ceil_div(leaves * policy.window, policy.parts)
    return told(counted(burst), max(0, ends - now), fired and 1 or 0, replay and 1 or 0)
  end

  function ops.O(key, trigger, threshold, window, cooldown, weight, nonce)
    local policy = { trigger = trigger, threshold = tonumber(threshold), window = tonumber(window) }
    policy.parts = trigger == 't' and 1 or 16
    policy.span = trigger == 't' and 1 or 17
    policy.bucket = floor_div(now * policy.parts, policy.window)
    policy.rest = trigger == 't' and tonumber(cooldown) or max(tonumber(cooldown), policy.window)
    local burst = burst_of(get(key), policy)
    if now >= over_at(burst) then
      burst = burst_of(nil, policy)
    end
    advance(burst, policy)
    if nonce ~= '' and burst.nonce == nonce then
      return observed(burst, policy, true, true)
    end
    burst.counts[1] = min(MAX_SAFE, burst.counts[1] + tonumber(weight))
    local latched = trigger == 't' and burst.fired == burst.bucket + 1
    local fired = counted(burst) >= policy.threshold and not latched and now >= burst.quiet
    if fired then
      burst.fired, burst.quiet, burst.nonce = burst.bucket + 1, now + policy.rest, nonce
    end
    local counts = {}
    for i = 1, #burst.counts do
      counts[i] = format('%.0f', burst.counts[i])
    end
    local head = format('1%s|%.0f,%.0f,%.0f,%.0f|', trigger, policy.window, burst.bucket, burst.fired, burst.quiet)
    put(key, head .. burst.nonce .. '|' .. concat(counts, ',') .. '.', over_at(burst))
    return observed(burst, policy, fired, false)
  end

  local read, run, args

  -- An operation's letter, arguments, and field. The last argument of D holds what it likes.
  local function read_op(op)
    local line_end = op:find('\n', 1, true)
    local words = line_end and op:sub(1, line_end - 1) or op
    local letter, rest = words:sub(1, 1), words:sub(3)
    read, run, field = op, ops[letter], line_end and op:sub(line_end + 1)
    if letter == 'D' then
      args = { match(rest, '^([^;]*);([^;]*);([^;]*);(.*)$') }
      return
    end
    args = {}
    for arg in (rest .. ';'):gmatch('([^;]*);') do
      args[#args + 1] = arg
    end
  end

  return function(key, op)
    if op ~= read then
      read_op(op)
    end
    return run(key, unpack(args))
  end
end

-- ── the batch ──────────────────────────────────────────────────────────────

-- What an operation throws is its reply, and must not fail its neighbours.
local function any(key, op)
  operations = operations or all_operations()
  local done, reply, text = pcall(operations, key, op)
  if not done then
    reply, text = '!', type(reply) == 'table' and reply.err or tostring(reply)
    readonly = readonly or match(text, 'READONLY.*')
  end
  texts[#texts + 1] = text
  return reply
end

-- The way that nearly every call goes: consume of one limit, a bucket or a fixed window, on a key that holds
-- nothing else, by a clock that has not stepped back. Both kinds keep what is charged and a time: a bucket in
-- units of 1/rate ms, which drain, and when it last was charged; a window as a count, and when it began.
local function simple(op)
  local cost, limit, kind, a, window, burst = match(op, '^C;(%d+);([%w~._-]+=([bf]),(%d+),(%d+),?(%d*))$')
  if not cost then
    return nil
  end
  local head = '1l|' .. limit .. ','
  if kind == 'f' then
    return head, head .. PAIR .. '.', tonumber(cost), tonumber(a), 1, tonumber(window), nil
  end
  local rate, full = tonumber(a), burst * window
  local form = head .. N .. format(',' .. N .. '.', now)
  return head, form, cost * window, full, tonumber(window), ceil_div(full, rate), rate
end

-- Written out, and of the script itself: in it, local variables cost nothing and functions do.
local argument, left, op, head, form, units, full, unit, span, rate = 1, 0, nil, nil, nil, 0, 0, 1, 0, nil
for i = 1, #KEYS do
  if left == 0 then
    argument = argument + 1
    left, op = match(ARGV[argument], '^(%d+);(.*)$')
    left = tonumber(left)
    head, form, units, full, unit, span, rate = simple(op)
  end
  left = left - 1
  local key, reply = KEYS[i], nil
  local text, known, debt, at = head and try('GET', key), head, 0, now
  if text then
    local level, since = match(text.err or text, '^(%d+),(%d+)%.$', #head + 1)
    local passed = level and now - since
    known = level and passed >= 0 and text:find(head, 1, true) == 1
    if known and (rate or passed < span) then
      debt = rate and level - passed * rate or level + 0
      if debt <= 0 then
        debt = 0
      elseif not rate then
        at = since + 0
      end
      -- More than fits is what tiers have added.
      known = debt <= full
    end
  end
  if known then
    local charged = debt + units
    if charged <= full then
      local px = format(N, rate and ceil_div(charged, rate) or at + span - now)
      if try('SET', key, format(form, charged, at), 'PX', px).ok then
        reply = format(N, floor_div(full - charged, unit)) .. ',' .. px
      end
    elseif debt <= full and (not text or try('PTTL', key) ~= -1) then
      local reset = debt == 0 and 0 or rate and ceil_div(debt, rate) or at + span - now
      local retry = rate and ceil_div(charged - full, rate) or reset
      local denied = units > full and PAIR .. ',0,2' or PAIR .. ',' .. N .. ',1'
      reply = format(denied, floor_div(full - debt, unit), reset, retry)
    end
  end
  replies[i] = reply or any(key, op)
end

-- A replica takes no write of any key: that is for the client to hear, which may look for the master.
if readonly then
  return redis.error_reply(readonly)
end
local numbers = concat(replies, ';')
return #texts == 0 and numbers or { numbers, unpack(texts) }
