package conversation

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Block is a named part of a payload (spec: Data blocks). A field names its block in the
// struct tag `block:"…"`; a field without one belongs to "call", which is always there.
type Block string

const (
	BlockCall               Block = "call"
	BlockCustomer           Block = "customer"
	BlockCosts              Block = "costs"
	BlockTranscript         Block = "transcript"
	BlockAnalysis           Block = "analysis"
	BlockEvaluations        Block = "evaluations"
	BlockFollowUps          Block = "follow_ups"
	BlockRecording          Block = "recording"
	BlockPerformanceMetrics Block = "performance_metrics"
	BlockConfigSnapshot     Block = "config_snapshot"
)

// Blocks is a set of blocks in the spec's order.
type Blocks []Block

// AllBlocks returns every block of the spec's table, in its order.
func AllBlocks() Blocks {
	return Blocks{
		BlockCall, BlockCustomer, BlockCosts, BlockTranscript, BlockAnalysis,
		BlockEvaluations, BlockFollowUps, BlockRecording, BlockPerformanceMetrics, BlockConfigSnapshot,
	}
}

// DefaultBlocks returns the blocks that are on unless somebody chooses otherwise.
func DefaultBlocks() Blocks {
	return Blocks{BlockCall, BlockCustomer, BlockTranscript, BlockAnalysis, BlockEvaluations, BlockRecording}
}

// ParseBlocks makes a set of names: repeated ones count once, and "call" is always in it.
// The error names every unknown one.
func ParseBlocks(names []string) (Blocks, error) {
	all := AllBlocks()
	var unknown []string
	wanted := Blocks{BlockCall}
	for _, name := range names {
		switch {
		case !slices.Contains(all, Block(name)):
			unknown = append(unknown, fmt.Sprintf("%q", name))
		case !wanted.Has(Block(name)):
			wanted = append(wanted, Block(name))
		}
	}
	if unknown != nil {
		return nil, fmt.Errorf("unknown block %s: the blocks are %s", strings.Join(unknown, ", "), all)
	}
	slices.SortFunc(wanted, func(a, b Block) int { return slices.Index(all, a) - slices.Index(all, b) })
	return wanted, nil
}

// Has tells whether b is in the set. "call" is in every set.
func (bs Blocks) Has(b Block) bool { return b == BlockCall || slices.Contains(bs, b) }

// Without returns the blocks of bs that others lacks.
func (bs Blocks) Without(others Blocks) Blocks {
	return slices.DeleteFunc(slices.Clone(bs), others.Has)
}

func (bs Blocks) String() string {
	names := make([]string, len(bs))
	for i, b := range bs {
		names[i] = string(b)
	}
	return strings.Join(names, ", ")
}

// Only returns the resource (a Call, Message or Thread) cut to the blocks. A block that
// does not apply to the resource changes nothing. The original is left as it is.
func Only[R any](resource R, blocks Blocks) R {
	v := reflect.ValueOf(&resource).Elem()
	for i := range v.NumField() {
		if block, ok := v.Type().Field(i).Tag.Lookup("block"); ok && !blocks.Has(Block(block)) {
			v.Field(i).SetZero()
		}
	}
	return resource
}
