// Package phone knows what a phone number is: E.164, and its country. It is apart from
// package carrier because the tables that it stands on are large, and few functions need
// them.
package phone

import (
	"errors"

	"github.com/nyaruka/phonenumbers"

	"parley/shared/carrier"
)

// errInvalid continues a sentence that names the field.
var errInvalid = errors.New("must be a valid phone number in E.164, such as +12025550123")

// Country is the ISO 3166-1 alpha-2 code of a phone number's country. A text that is no
// valid number in E.164, or one of no country (satellites, international freephone), is
// an error that says so.
func Country(number string) (string, error) {
	if !carrier.IsE164(number) {
		return "", errInvalid
	}
	parsed, err := phonenumbers.Parse(number, "")
	if err != nil || !phonenumbers.IsValidNumber(parsed) || phonenumbers.Format(parsed, phonenumbers.E164) != number {
		return "", errInvalid
	}
	country := phonenumbers.GetRegionCodeForNumber(parsed)
	if len(country) != 2 { // "001" is the whole world
		return "", errors.New("must be a phone number of one country")
	}
	return country, nil
}
