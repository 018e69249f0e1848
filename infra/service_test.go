package main

import (
	"slices"
	"strings"
	"testing"

	"parley/shared/httpapi"
)

func TestByFunction(t *testing.T) {
	routes := []httpapi.Route{
		{Function: "b", Path: "/1"}, {Function: "a", Path: "/2"}, {Function: "b", Path: "/3"},
	}
	var got []string
	for _, group := range byFunction(routes) {
		paths := ""
		for _, route := range group {
			paths += route.Path
		}
		got = append(got, group[0].Function+paths)
	}
	if want := []string{"b/1/3", "a/2"}; !slices.Equal(got, want) {
		t.Errorf("byFunction = %s, want %s", strings.Join(got, " "), strings.Join(want, " "))
	}
}
