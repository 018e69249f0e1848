package phone_test

import (
	"fmt"
	"testing"

	"github.com/nyaruka/phonenumbers"

	"parley/shared/carrier/phone"
)

// Every number of the ranges that are set aside for fiction is valid, so demos and tests
// need no number that somebody could own.
func TestCountryOfFiction(t *testing.T) {
	tests := []struct {
		format  string
		numbers int
		step    int
		want    string
	}{
		{"+1202555%04d", 200, 1, "US"}, // from 0100, below
		{"+4420794%05d", 61000, 1, "GB"},
		{"+61491570%03d", 160, 1, "AU"},
		{"+33199%06d", 10000, 7, "FR"},
	}
	first := []int{100, 60000, 156, 0}
	for i, tt := range tests {
		for n := first[i]; n < tt.numbers; n += tt.step {
			number := fmt.Sprintf(tt.format, n)
			if got, err := phone.Country(number); got != tt.want || err != nil {
				t.Errorf("Country(%s) = %q, %v; want %s", number, got, err, tt.want)
			}
		}
	}
}

func TestCountryRefuses(t *testing.T) {
	const invalid = "must be a valid phone number in E.164, such as +12025550123"
	tests := map[string]struct{ number, want string }{
		"nothing":                 {"", invalid},
		"a plus":                  {"+", invalid},
		"no plus":                 {"12025550123", invalid},
		"00 for the plus":         {"0012025550123", invalid},
		"no country begins so":    {"+02025550123", invalid},
		"spaces":                  {"+1 202 555 0123", invalid},
		"white space around":      {" +12025550123", invalid},
		"a line break at the end": {"+12025550123\n", invalid},
		"brackets and hyphens":    {"+1(202)555-0123", invalid},
		"letters":                 {"+1202555CALL", invalid},
		"an extension":            {"+12025550123x5", invalid},
		"digits of other scripts": {"+١٢٠٢٥٥٥٠١٢٣", invalid},
		"full-width digits":       {"+1\uff12025550123", invalid},
		"a NUL":                   {"+1202555\x000123", invalid},
		"16 digits":               {"+1202555012345678", invalid},
		"a URI":                   {"tel:+12025550123", invalid},
		"too short":               {"+1202555", invalid},
		"a digit too many":        {"+120255501234", invalid},
		"no such country":         {"+9992025550123", invalid},
		"no area begins with 1":   {"+11025550123", invalid},
		"a satellite's":           {worldwide(), "must be a phone number of one country"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got, err := phone.Country(tt.number); err == nil || err.Error() != tt.want || got != "" {
				t.Errorf("Country(%q) = %q, %v; want the error %q", tt.number, got, err, tt.want)
			}
		})
	}
}

// worldwide is the library's own example, as no range of this kind is set aside for fiction.
func worldwide() string {
	return phonenumbers.Format(phonenumbers.GetExampleNumberForNonGeoEntity(870), phonenumbers.E164)
}
