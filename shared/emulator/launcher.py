"""Serves the AWS emulator on the listening socket that it inherits.

Its own command line would do, but for two delays of about 50 ms each, which this takes
away: Nagle's algorithm, on the emulator's connections and on those of the functions
that it runs, and a wait after each invocation for a first line of log; but for timeouts
of state machines that it doesn't keep; but for actions that IAM doesn't know; and but for
records of a stream that fail, which it loses.
"""

import asyncio
import json
import logging
import resource
import socket
import socketserver
import sys
import threading
import time
import uuid

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
from ministack.app import AUTH, app  # noqa: E402
from ministack.core import iam_actions, iam_evaluator  # noqa: E402
from ministack.core.lambda_runtime import Worker  # noqa: E402
from ministack.services import lambda_svc, s3, stepfunctions  # noqa: E402

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

# IAM has no actions for SQS's batches: whoever may send a message may send ten.
extract_iam_action = iam_actions.extract_iam_action


def extract_known_iam_action(service, *request):
    action = extract_iam_action(service, *request)
    return action.removesuffix("Batch") if service == "sqs" and action else action


iam_actions.extract_iam_action = extract_known_iam_action

# Records of a DynamoDB stream that fail: the emulator doesn't read which ones a function
# reports, repeats a batch for ever where the function throws, and keeps nothing in a
# bucket. Here, as on AWS, what came before the first record that fails is done; that one is
# tried MaximumRetryAttempts more times, then it is kept in the bucket and the stream goes
# on. AWS may keep its neighbours with it, and waits longer between attempts than this.
RETRY_SECONDS = 0.1
lambda_svc._ESM_BACKOFF_SECONDS = RETRY_SECONDS / 2  # over when the mapping is woken

filter_records = lambda_svc._apply_filter_criteria
execute_function = lambda_svc._execute_function
send_failure = lambda_svc._send_ddb_stream_failure_record
polled = {}  # the batch that the one thread which reads streams is about to execute
attempts = {}  # by mapping: the record at which it stands, and how often that was tried


def filter_polled_records(records, mapping):
    matching = filter_records(records, mapping)
    if ":dynamodb:" in mapping["EventSourceArn"]:
        polled.update(mapping=mapping, records=records, matching=matching)
    return matching


def execute_polled(function, event):
    # Other threads invoke functions, too, and with records like these when they replay them.
    given = event.get("Records") if isinstance(event, dict) else None
    if given is None or given is not polled.get("matching"):
        return execute_function(function, event)
    mapping, records = polled["mapping"], polled["records"]
    polled.clear()
    failed, result = first_failure(function, mapping, given)
    if failed is None:
        attempts.pop(mapping["UUID"], None)
        return result
    done, tried = records.index(failed), count_attempt(mapping, failed)
    if 0 <= int(mapping.get("MaximumRetryAttempts", -1)) < tried:
        keep_failure(mapping, function, [failed], mapping["EventSourceArn"], result, "RetryAttemptsExhausted")
        done += 1
    with lambda_svc._dynamodb_stream_positions_lock:
        lambda_svc._dynamodb_stream_positions[mapping["UUID"]] += done
    threading.Timer(RETRY_SECONDS, lambda_svc._esm_wake.set).start()
    return {**result, "error": True}  # so that the emulator takes no further step itself


def first_failure(function, mapping, records):
    """The first record that fails, or None, with the answer that says so. A batch that
    throws is bisected."""
    result = execute_function(function, {"Records": records})
    if not result.get("error"):
        reported = set()
        if "ReportBatchItemFailures" in mapping["FunctionResponseTypes"]:
            failures = (result.get("body") or {}).get("batchItemFailures") or []
            reported = {failure["itemIdentifier"] for failure in failures}
        return next((r for r in records if r["dynamodb"]["SequenceNumber"] in reported), None), result
    if len(records) == 1:
        return records[0], result
    half = len(records) // 2
    failed, result = first_failure(function, mapping, records[:half])
    return (failed, result) if failed else first_failure(function, mapping, records[half:])


def count_attempt(mapping, record):
    number = record["dynamodb"]["SequenceNumber"]
    last, tried = attempts.get(mapping["UUID"], (None, 0))
    tried = tried + 1 if last == number else 1
    attempts[mapping["UUID"]] = number, tried
    return tried


def keep_failure(mapping, function, records, stream, result, condition):
    """Keeps in the bucket what AWS keeps there, under AWS's key, if the function's role may."""
    target = ((mapping.get("DestinationConfig") or {}).get("OnFailure") or {}).get("Destination", "")
    if not target.startswith("arn:aws:s3:::"):
        return send_failure(mapping, function, records, stream, result, condition)
    now, shard = time.gmtime(), "shardId-00000000000000000000-00000000"
    changes = [record["dynamodb"] for record in records]
    kept = {
        "requestContext": {
            "requestId": str(uuid.uuid4()),
            "functionArn": function["config"]["FunctionArn"],
            "condition": condition,
            "approximateInvokeCount": attempts.get(mapping["UUID"], (None, 1))[1],
        },
        "responseContext": {"statusCode": 200, "executedVersion": "$LATEST", "functionError": "Unhandled"},
        "version": "1.0",
        "timestamp": time.strftime("%Y-%m-%dT%H:%M:%S.000Z", now),
        "DDBStreamBatchInfo": {
            "shardId": shard,
            "startSequenceNumber": changes[0]["SequenceNumber"],
            "endSequenceNumber": changes[-1]["SequenceNumber"],
            "batchSize": len(records),
            "streamArn": stream,
        },
        "payload": json.dumps({"Records": records}),
    }
    key = time.strftime(f"aws/lambda/{mapping['UUID']}/{shard}/%Y/%m/%d/%Y-%m-%dT%H.%M.%S-{uuid.uuid4()}", now)
    if not (may(function, "s3:ListBucket", target) and may(function, "s3:PutObject", f"{target}/{key}")):
        logging.error("%s may not keep in %s what it fails on: lost", mapping["FunctionName"], target)
        return None
    status, _, answer = s3._put_object(target.removeprefix("arn:aws:s3:::"), key, json.dumps(kept).encode(), {})
    if status != 200:
        logging.error("%s could not keep in %s what it fails on: lost: %s", mapping["FunctionName"], target, answer)
    return None


def may(function, action, resource):
    role = function["config"]["Role"]
    account = role.split(":")[4]
    context = iam_evaluator.EvalContext(role, "AssumedRole", account, action, resource, "")
    policies = iam_evaluator._gather_role_policies(role.rsplit("/", 1)[-1], account)
    return not AUTH or iam_evaluator.evaluate(context, policies).decision == "Allow"


lambda_svc._apply_filter_criteria = filter_polled_records
lambda_svc._execute_function = execute_polled
lambda_svc._send_ddb_stream_failure_record = keep_failure

config = Config()
config.bind = [f"fd://{fd}"]
config.keep_alive_timeout = 75
config.keep_alive_max_requests = 2**31
config.loglevel = "WARNING"
asyncio.run(serve(app, config))
