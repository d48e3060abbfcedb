;; Two tight loops: the worst case for whatever is counted or checked at each turn.
(module
  (memory 1)

  ;; Adds up all bytes of a page, this many times.
  (func (export "bytes") (param $rounds i32) (result i32)
    (local $at i32) (local $sum i32)
    (loop $round
      (local.set $at (i32.const 0))
      (loop $byte
        (local.set $sum (i32.add (local.get $sum) (i32.load8_u (local.get $at))))
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (br_if $byte (i32.lt_u (local.get $at) (i32.const 65536))))
      (local.set $rounds (i32.sub (local.get $rounds) (i32.const 1)))
      (br_if $round (local.get $rounds)))
    (local.get $sum))

  ;; Steps of a generator of numbers, this many: each waits for the one before it.
  (func (export "numbers") (param $left i32) (result i32)
    (local $number i32)
    (local.set $number (local.get $left))
    (loop $step
      (local.set $number (i32.xor (local.get $number) (i32.shl (local.get $number) (i32.const 13))))
      (local.set $number (i32.xor (local.get $number) (i32.shr_u (local.get $number) (i32.const 17))))
      (local.set $number (i32.xor (local.get $number) (i32.shl (local.get $number) (i32.const 5))))
      (local.set $left (i32.sub (local.get $left) (i32.const 1)))
      (br_if $step (local.get $left)))
    (local.get $number)))
