import { expect, test } from "vitest";
import { delay } from "./connection.svelte";
import { reader } from "./events";

// A proxy cuts a stream anywhere; an event that is half there must wait for its other half.
test("events come out whole, however the text is cut", () => {
  const text = ': nothing new\n\nevent: answer\nid: 7\ndata: {"a":\ndata: 1}\n\nid: 8\r\ndata: x\r\n\r\nevent: answer\ndata: not yet';
  const whole = reader()(text);
  expect(whole).toEqual([{ id: "7", name: "answer", data: '{"a":\n1}' }, { id: "8", name: "message", data: "x" }]);
  const read = reader();
  expect([...text].flatMap((c) => read(c))).toEqual(whole);
});
test("waiting longer after each failure, and never for long", () => expect([1, 2, 3, 4, 5, 50].map(delay)).toEqual([1, 2, 4, 8, 15, 15]));
