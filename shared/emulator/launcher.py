"""Serves the AWS emulator on the listening socket that it inherits.

Its own command line would do, but for two delays of about 50 ms each, which this takes
away: Nagle's algorithm, on the emulator's connections and on those of the functions
that it runs, and a wait after each invocation for a first line of log; and but for
timeouts of state machines that it doesn't keep.
"""

import asyncio
import resource
import socket
import socketserver
import sys

fd = int(sys.argv[1])

# The API through which functions fetch their events is served by this class.
socketserver.StreamRequestHandler.disable_nagle_algorithm = True

# Accepted connections inherit the option from the listening socket.
listener = socket.socket(fileno=fd)
listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
listener.detach()

# Every function that runs holds several files open.
_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 65536) if most > 0 else 65536, most))

from hypercorn.asyncio import serve  # noqa: E402
from hypercorn.config import Config  # noqa: E402
from ministack.app import app  # noqa: E402
from ministack.core.lambda_runtime import Worker  # noqa: E402
from ministack.services import stepfunctions  # noqa: E402

# A function's lines are in the pipe when it answers, so the wait (for the first line, for
# another one, at most) need only cover a change of threads. A line that comes later is
# logged with the next invocation.
Worker._drain_stderr_bounded.__defaults__ = (0.005, 0.002, 0.25)

# A state machine's task may have its timeout in its input. The emulator knows only one
# that is in the definition, and waits for a day without.
execute_task = stepfunctions._execute_task


def execute_task_in_time(state, given, execution, context):
    if "TimeoutSecondsPath" in state:
        seconds = stepfunctions._resolve_path(state["TimeoutSecondsPath"], given)
        state = {**state, "TimeoutSeconds": seconds}
    return execute_task(state, given, execution, context)


stepfunctions._execute_task = execute_task_in_time

config = Config()
config.bind = [f"fd://{fd}"]
config.keep_alive_timeout = 75
config.keep_alive_max_requests = 2**31
config.loglevel = "WARNING"
asyncio.run(serve(app, config))
