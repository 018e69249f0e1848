package conversation

import (
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The spec's table of blocks: what each applies to, and whether it is on by default.
func TestBlocksOfResources(t *testing.T) {
	table := []struct {
		block                   Block
		on                      bool
		calls, messages, thread bool
	}{
		{BlockCall, true, true, true, true},
		{BlockCustomer, true, true, true, true},
		{BlockCosts, false, true, true, true},
		{BlockTranscript, true, true, false, true},
		{BlockAnalysis, true, true, false, true},
		{BlockEvaluations, true, true, false, true},
		{BlockFollowUps, false, true, false, true},
		{BlockRecording, true, true, false, false},
		{BlockPerformanceMetrics, false, true, false, false},
		{BlockConfigSnapshot, false, true, false, false},
	}
	var all, defaults Blocks
	for _, row := range table {
		all = append(all, row.block)
		if row.on {
			defaults = append(defaults, row.block)
		}
		for name, resource := range map[string]struct {
			blocks  Blocks
			applies bool
		}{
			"calls": {blocksOf[Call](t), row.calls}, "messages": {blocksOf[Message](t), row.messages}, "threads": {blocksOf[Thread](t), row.thread},
		} {
			if applies := resource.blocks.Has(row.block); applies != resource.applies {
				t.Errorf("%s applies to %s: %v, want %v", row.block, name, applies, resource.applies)
			}
		}
	}
	if !slices.Equal(AllBlocks(), all) || !slices.Equal(DefaultBlocks(), defaults) {
		t.Errorf("blocks %v, by default %v; want %v, %v", AllBlocks(), DefaultBlocks(), all, defaults)
	}
}

// blocksOf reads a resource's struct tags. A block has one field, which has its name.
func blocksOf[R any](t *testing.T) Blocks {
	t.Helper()
	var blocks Blocks
	for field := range reflect.TypeFor[R]().Fields() {
		block, ok := field.Tag.Lookup("block")
		if !ok {
			continue
		}
		if name := field.Tag.Get("json"); name != block+",omitzero" || !slices.Contains(AllBlocks(), Block(block)) || slices.Contains(blocks, Block(block)) {
			t.Errorf("%T.%s is %s and in the block %s", *new(R), field.Name, name, block)
		}
		blocks = append(blocks, Block(block))
	}
	return blocks
}

func TestParseBlocks(t *testing.T) {
	tests := []struct {
		names []string
		want  Blocks
		err   string
	}{
		{nil, Blocks{BlockCall}, ""},
		{[]string{"costs"}, Blocks{BlockCall, BlockCosts}, ""},
		{[]string{"recording", "costs", "call", "costs"}, Blocks{BlockCall, BlockCosts, BlockRecording}, ""},
		{[]string{"salary", "costs", ""}, nil, `unknown block "salary", "": the blocks are ` + AllBlocks().String()},
		{[]string{"Costs"}, nil, `unknown block "Costs": the blocks are ` + AllBlocks().String()},
	}
	for _, tt := range tests {
		got, err := ParseBlocks(tt.names)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if !slices.Equal(got, tt.want) || text != tt.err {
			t.Errorf("ParseBlocks(%q) = %v, %q; want %v, %q", tt.names, got, text, tt.want, tt.err)
		}
	}
}

func TestBlocksWithout(t *testing.T) {
	wanted := Blocks{BlockCall, BlockCosts, BlockAnalysis}
	for _, tt := range []struct{ others, want Blocks }{
		{nil, Blocks{BlockCosts, BlockAnalysis}}, // "call" is in every set
		{Blocks{BlockCosts}, Blocks{BlockAnalysis}},
		{AllBlocks(), Blocks{}},
	} {
		if got := wanted.Without(tt.others); !slices.Equal(got, tt.want) || len(wanted) != 3 {
			t.Errorf("Without(%v) = %v, want %v", tt.others, got, tt.want)
		}
	}
}

func TestOnly(t *testing.T) {
	call := Call{
		CallID: "c", Metadata: JSON(`{}`), Customer: &Customer{Name: "Ada"}, Costs: &CallCosts{}, Transcript: []Turn{}, Analysis: &Analysis{},
		Evaluations: []Evaluation{}, FollowUps: []FollowUp{}, Recording: &Recording{}, PerformanceMetrics: &PerformanceMetrics{}, ConfigSnapshot: &ConfigSnapshot{},
	}
	whole := call
	identity := Call{CallID: "c", Metadata: JSON(`{}`)}
	withTwo := identity
	withTwo.Customer, withTwo.Transcript = call.Customer, call.Transcript
	for name, tt := range map[string]struct {
		blocks Blocks
		want   Call
	}{
		"all":         {AllBlocks(), whole},
		"none":        {nil, identity},
		"call alone":  {Blocks{BlockCall}, identity},
		"two of them": {Blocks{BlockTranscript, BlockCustomer}, withTwo},
	} {
		if got := Only(call, tt.blocks); !cmp.Equal(got, tt.want) {
			t.Errorf("%s (-want +got):\n%s", name, cmp.Diff(tt.want, got))
		}
	}
	if !cmp.Equal(call, whole) {
		t.Error("the original has changed")
	}
	message := Message{MessageID: "m", Customer: &Customer{}, Costs: &MessageCosts{}}
	if got := Only(message, Blocks{BlockRecording, BlockCustomer}); got.Customer == nil || got.Costs != nil || got.MessageID != "m" {
		t.Errorf("message %+v, want it with its customer alone; a block that doesn't apply changes nothing", got)
	}
	thread := Thread{ThreadID: "t", Transcript: []Turn{}, CloseReason: Graded}
	if got := Only(thread, nil); got.Transcript != nil || got.CloseReason != Graded {
		t.Errorf("thread %+v, want it without its transcript", got)
	}
}
