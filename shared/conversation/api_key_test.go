package conversation

import "testing"

const keyID = "01980000-0000-7000-8000-000000000001"

func TestAPIKeyTextParsesBack(t *testing.T) {
	text := APIKey{APIKeyID: keyID}.Text("SECRET")
	if want := "parley_live_" + keyID + "_SECRET"; text != want {
		t.Errorf("Text = %q, want %q", text, want)
	}
	if id, secret, ok := ParseAPIKey(text); id != keyID || secret != "SECRET" || !ok {
		t.Errorf("ParseAPIKey = %q, %q, %v; want %q, SECRET, true", id, secret, ok, keyID)
	}
}

func TestParseAPIKeyRefuses(t *testing.T) {
	tests := map[string]string{
		"nothing":                  "",
		"another prefix":           "parley_test_" + keyID + "_SECRET",
		"no secret":                "parley_live_" + keyID,
		"empty secret":             "parley_live_" + keyID + "_",
		"no id":                    "parley_live__SECRET",
		"no UUID":                  "parley_live_key_SECRET",
		"upper-case id":            "parley_live_01980000-0000-7000-8000-00000000000A_SECRET",
		"id without hyphens":       "parley_live_01980000000070008000000000000001_SECRET",
		"id in braces":             "parley_live_{" + keyID + "}_SECRET",
		"underscore in the secret": "parley_live_" + keyID + "_SEC_RET",
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			if id, secret, ok := ParseAPIKey(text); id != "" || secret != "" || ok {
				t.Errorf("ParseAPIKey = %q, %q, %v; want nothing", id, secret, ok)
			}
		})
	}
}

func TestHashSecret(t *testing.T) {
	const want = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" // FIPS 180-2, "abc"
	if got := HashSecret("abc"); got != want {
		t.Errorf("HashSecret = %q, want %q", got, want)
	}
}
