package dynamo

import (
	"bytes"
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"parley/shared/conversation"
)

// Call reads a call, strongly consistent, with the large fields of these blocks.
func (s *Store) Call(ctx context.Context, ws conversation.WorkspaceID, callID conversation.CallID, blocks conversation.Blocks) (conversation.Call, error) {
	call, err := get[conversation.Call](ctx, s, id(ws, kindCall, callID), blocks)
	return call, wrap(err, "get call %s", callID)
}

// InsertCall writes a finished call as a whole: history from elsewhere, which starts no
// lifecycle and makes no event. A call that exists is left as it is.
func (s *Store) InsertCall(ctx context.Context, call conversation.Call) error {
	it, err := encode(call)
	if err != nil {
		return wrap(err, "insert call %s", call.CallID)
	}
	it[PartitionKey] = text(id(call.WorkspaceID, kindCall, call.CallID))
	listAs(it, call.WorkspaceID, call.AssistantID, callsList, string(call.CallID))
	return wrap(s.insert(ctx, it), "insert call %s", call.CallID)
}

// PutRecording stores a call's audio, a WAV file.
func (s *Store) PutRecording(ctx context.Context, ws conversation.WorkspaceID, callID conversation.CallID, wav []byte) error {
	_, err := s.s3().PutObject(ctx, &s3.PutObjectInput{
		Bucket: &s.bucket, Key: recordingKey(ws, callID), Body: bytes.NewReader(wav),
		ContentType: aws.String("audio/wav"),
	})
	return wrap(err, "store recording of call %s", callID)
}

// RecordingURL signs an address that reads a call's audio until it expires. It asks AWS
// nothing, so it doesn't know whether there is audio.
func (s *Store) RecordingURL(ctx context.Context, ws conversation.WorkspaceID, callID conversation.CallID, expires time.Duration) (string, error) {
	request, err := s3.NewPresignClient(s.s3()).PresignGetObject(ctx,
		&s3.GetObjectInput{Bucket: &s.bucket, Key: recordingKey(ws, callID)},
		s3.WithPresignExpires(expires))
	if err != nil {
		return "", wrap(err, "sign recording of call %s", callID)
	}
	return request.URL, nil
}

func recordingKey(ws conversation.WorkspaceID, callID conversation.CallID) *string {
	return aws.String(RecordingsPrefix + string(ws) + "/" + string(callID) + ".wav")
}
