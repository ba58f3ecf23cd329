// Whether the server can be reached, for the line that says so.

class Connection {
  /** Seconds until the next try; undefined while all is well. */
  seconds = $state<number | undefined>();
  #hurry: (() => void)[] = [];

  /** Tries at once. */
  now() {
    for (const go of this.#hurry.splice(0)) go();
  }

  /** The server answered. */
  back() {
    this.seconds = undefined;
  }

  wait(seconds: number, signal?: AbortSignal): Promise<void> {
    return new Promise((done, fail) => {
      let left = seconds;
      this.seconds = left;
      const end = () => {
        clearInterval(tick);
        signal?.removeEventListener("abort", stop);
        this.seconds = 0; // trying
      };
      const stop = () => {
        end();
        this.seconds = undefined;
        fail(signal!.reason as Error);
      };
      const tick = setInterval(() => {
        this.seconds = --left;
        if (left <= 0) {
          end();
          done();
        }
      }, 1000);
      signal?.addEventListener("abort", stop);
      this.#hurry.push(() => {
        end();
        done();
      });
    });
  }
}

export const connection = new Connection();

/** How long to wait after so many failures in a row: 1, 2, 4, 8, then 15 seconds. */
export const delay = (failures: number) => Math.min(15, 2 ** (failures - 1));

/** Waits before the next try, and counts down where people see it. */
export const pause = (failures: number, signal?: AbortSignal) => connection.wait(delay(failures), signal);
