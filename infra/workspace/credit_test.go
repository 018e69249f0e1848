package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/shopspring/decimal"

	"parley/shared/conversation"
	"parley/shared/dynamo/dynamotest"
)

func TestParseAmount(t *testing.T) {
	for _, text := range []string{"0.0001", "25", "25.00", "1e3"} {
		if got, err := parseAmount(text); err != nil || !got.Equal(decimal.RequireFromString(text)) {
			t.Errorf("parseAmount(%s) = %s, %v; want it", text, got, err)
		}
	}
	for _, text := range []string{"", "0", "-1", "0.00001", "ten", "NaN"} {
		if got, err := parseAmount(text); err == nil {
			t.Errorf("parseAmount(%s) = %s, want an error", text, got)
		}
	}
}

func TestCreditOfNobody(t *testing.T) {
	var out bytes.Buffer
	ws := conversation.WorkspaceID(conversation.NewID())
	err := credit(t.Context(), dynamotest.Store(t), ws, decimal.NewFromInt(1), &out)
	if err == nil || !strings.Contains(err.Error(), string(ws)) || out.Len() > 0 {
		t.Errorf("credit = %v, printed %q; want an error that names the workspace", err, out.String())
	}
}
