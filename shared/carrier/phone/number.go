// Package phone knows what a phone number is: E.164, and its country. It is apart from
// package carrier because the tables that it stands on are large, and few functions need
// them.
package phone

import (
	"fmt"

	"github.com/nyaruka/phonenumbers"

	"parley/shared/carrier"
)

// Country is the ISO 3166-1 alpha-2 code of a phone number's country. A text that is no
// valid number in E.164 is an error that says so.
func Country(number string) (string, error) {
	if !carrier.IsE164(number) {
		return "", fmt.Errorf("must be a phone number in E.164, such as +12025550123")
	}
	parsed, err := phonenumbers.Parse(number, "")
	if err != nil || !phonenumbers.IsValidNumber(parsed) {
		return "", fmt.Errorf("is not a valid phone number")
	}
	country := phonenumbers.GetRegionCodeForNumber(parsed)
	if len(country) != 2 { // "001" is the whole world's: satellites and international freephone
		return "", fmt.Errorf("is a number of no country")
	}
	return country, nil
}
