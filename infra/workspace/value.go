package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // the operator's machine may have none
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/nyaruka/phonenumbers"
	"github.com/shopspring/decimal"
	"golang.org/x/text/currency"
	"golang.org/x/text/language"

	"parley/shared/carrier/phone"
	"parley/shared/conversation"
)

// The values that a file may hold: each parser's error says what the value must be.

// text is some text, up to so many characters.
func text(most int) func(string) (string, error) {
	return func(s string) (string, error) {
		switch {
		case strings.TrimSpace(s) == "":
			return "", errors.New("must not be empty")
		case utf8.RuneCountInString(s) > most:
			return "", fmt.Errorf("must have at most %d characters, and has %d", most, utf8.RuneCountInString(s))
		}
		return strings.TrimRight(s, "\n"), nil // of a block, whose end is a line end
	}
}

var (
	placeholder  = regexp.MustCompile(`\{\{(.*?)\}\}`)
	variableName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,63}$`)
)

// template is text with placeholders. A name that no variable can have would be read out
// to the customer, braces and all.
func template(s string) (string, error) {
	for _, match := range placeholder.FindAllStringSubmatch(s, -1) {
		if !variableName.MatchString(match[1]) {
			return "", fmt.Errorf("has the placeholder %s, whose name must be letters, digits and underscores, a letter first, without spaces", match[0])
		}
	}
	if len(s) > conversation.MaxPromptBytes {
		return "", fmt.Errorf("must have at most %d bytes, and has %d", conversation.MaxPromptBytes, len(s))
	}
	return text(conversation.MaxPromptBytes)(s)
}

func id(s string) (string, error) {
	parsed, err := uuid.Parse(s)
	if err != nil || parsed.Version() != 7 || parsed.String() != s {
		return "", fmt.Errorf("must be a UUID of version 7 in lower case, such as the new one %s", conversation.NewID())
	}
	return s, nil
}

func oneOf[T ~string](values ...T) func(string) (T, error) {
	return func(s string) (T, error) {
		if !slices.Contains(values, T(s)) {
			return "", fmt.Errorf("must be one of %v, and is %q", values, s)
		}
		return T(s), nil
	}
}

func yesNo(s string) (bool, error) {
	switch s {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, fmt.Errorf("must be true or false, and is %q", s)
}

func whole(least, most int) func(string) (int, error) {
	return func(s string) (int, error) {
		n, err := strconv.Atoi(s)
		if err != nil || n < least || n > most {
			return 0, fmt.Errorf("must be a whole number from %d to %d, and is %q", least, most, s)
		}
		return n, nil
	}
}

// seconds is a duration such as 90s, 30m or 1h30m.
func seconds(least, most time.Duration) func(string) (int, error) {
	return func(s string) (int, error) {
		d, err := time.ParseDuration(s)
		if err != nil || d < least || d > most || d%time.Second != 0 {
			return 0, fmt.Errorf("must be whole seconds from %v to %v, such as 90s, 30m or 1h30m, and is %q", least, most, s)
		}
		return int(d / time.Second), nil
	}
}

// amount is a decimal from 0 up. It is kept as it was written but for what doesn't count.
func amount(s string) (string, error) {
	d, err := decimal.NewFromString(s)
	if err != nil || d.IsNegative() || d.Exponent() < -6 || d.GreaterThan(decimal.New(1, 9)) || strings.ContainsAny(s, "eE") {
		return "", fmt.Errorf("must be an amount such as 0.012, with at most 6 decimals, and is %q", s)
	}
	return d.String(), nil
}

func timezone(s string) (string, error) {
	if _, err := time.LoadLocation(s); err != nil || s == "" || s == "Local" {
		return "", fmt.Errorf("must be a timezone of the IANA database, such as Europe/Paris, and is %q", s)
	}
	return s, nil
}

func country(s string) (string, error) {
	if !phonenumbers.GetSupportedRegions()[s] {
		return "", fmt.Errorf("must be a country of two letters, such as FR, and is %q", s)
	}
	return s, nil
}

func currencyCode(s string) (string, error) {
	if unit, err := currency.ParseISO(s); err != nil || unit.String() != s {
		return "", fmt.Errorf("must be a currency of three letters, such as EUR, and is %q", s)
	}
	return s, nil
}

func languageTag(s string) (string, error) {
	if _, err := language.Parse(s); err != nil || strings.Contains(s, "_") {
		return "", fmt.Errorf("must be a language, such as en or fr-CA, and is %q", s)
	}
	return s, nil
}

// clock is a time of day.
func clock(s string) (string, error) {
	if at, err := time.Parse("15:04", s); err != nil || at.Format("15:04") != s {
		return "", fmt.Errorf("must be a time of day, such as 21:00, and is %q", s)
	}
	return s, nil
}

// phoneNumber is a valid number in E.164, with its country.
func phoneNumber(s string) (conversation.PhoneNumber, error) {
	country, err := phone.Country(s)
	if err != nil {
		return conversation.PhoneNumber{}, fmt.Errorf("%w, and is %q", err, s)
	}
	return conversation.PhoneNumber{PhoneNumber: s, Country: country}, nil
}
