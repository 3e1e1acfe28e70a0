package attacks

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"
)

var raw64 = base64.RawURLEncoding

// tokens returns attempts to read the owner's job with invalid tokens.
func tokens(w *World) []Attack {
	forged := map[string]string{
		"no token":                            "",
		"a truncated token":                   w.OwnerToken[:len(w.OwnerToken)-4],
		"half a token":                        w.OwnerToken[:len(w.OwnerToken)/2],
		"a token without its signature":       cutSignature(w.OwnerToken, ""),
		"a token with an empty signature":     cutSignature(w.OwnerToken, "."),
		"a token with another's signature":    swapped(w.OwnerToken, w.ThiefToken),
		"the thief's token with another name": renamed(w.ThiefToken, w.Thief, w.Owner),
		"a token with a changed bit":          flipped(w.OwnerToken),
		"a token that is followed by more":    w.OwnerToken + ".x",
		"a token in other letters":            strings.ToUpper(w.OwnerToken),
		"the algorithm none":                  resigned(w.OwnerToken, map[string]any{"alg": "none", "typ": "JWT"}, nil),
		"the algorithm NoNe":                  resigned(w.OwnerToken, map[string]any{"alg": "NoNe", "typ": "JWT"}, nil),
		"no algorithm":                        resigned(w.OwnerToken, map[string]any{"typ": "JWT"}, nil),
		"HS256 with the key's id as key":      hmacSigned(w.OwnerToken),
		"a key that comes along":              ownKey(w.OwnerToken, false),
		"a key at an address":                 ownKey(w.OwnerToken, true),
		"a key's id that is a path":           resigned(w.OwnerToken, map[string]any{"alg": "EdDSA", "typ": "JWT", "kid": "../../../../dev/null"}, []byte("x")),
		"an expired token":                    w.Expired,
		"a revoked token":                     w.Revoked,
		"the token of a disabled person":      w.Disabled,
		"a refresh token":                     w.Refresh,
		"the id of a token":                   w.TokenID,
		"a very long token":                   strings.Repeat("a", 8000) + "." + strings.Repeat("b", 8000) + ".c",
		"a token of empty parts":              "..",
		"a token that isn't base64":           "!!.!!.!!",
		"a token with spaces in it":           strings.Replace(w.OwnerToken, ".", " .", 1),
		"two tokens in one header":            w.ThiefToken + ", Bearer " + w.OwnerToken,
		"a token with a zero byte behind it":  w.OwnerToken[:len(w.OwnerToken)-1] + "%00",
		"a JSON serialisation of a signature": `{"payload":"` + strings.Split(w.OwnerToken, ".")[1] + `","signatures":[]}`,
	}
	var out []Attack
	for name, token := range forged {
		if token != "" || name == "no token" {
			out = append(out, Attack{Name: name, Raw: w.ask("GET", w.detail(), token), Want: unknown})
		}
	}
	basic := func(user, password string) string {
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
	}
	one := func(name, raw string, want []int) { out = append(out, Attack{Name: name, Raw: raw, Want: want}) }
	one("a sign-in as the owner with the thief's token", w.ask("GET", w.detail(), "", "Authorization", basic(w.Owner, w.ThiefToken)), unknown)
	one("a session's token as a password", w.ask("GET", w.detail(), "", "Authorization", basic(w.Owner, w.OwnerToken)), unknown)
	one("a password that is empty", w.ask("GET", w.detail(), "", "Authorization", basic(w.Owner, "")), unknown)
	one("Authorization twice", w.ask("GET", w.detail(), w.ThiefToken, "Authorization", "Bearer "+w.OwnerToken), unknown)
	one("Authorization twice, in another case", w.ask("GET", w.detail(), w.OwnerToken, "authorization", "Bearer "+w.ThiefToken), unknown)
	one("a token in the query", w.ask("GET", w.detail()+"?token="+w.OwnerToken+"&access_token="+w.OwnerToken+"&authorization=Bearer%20"+w.OwnerToken, ""), unknown)
	one("a token in a cookie", w.ask("GET", w.detail(), "", "Cookie", "token="+w.OwnerToken+"; "+cookie+w.OwnerToken), unknown)
	one("a token in another header", w.ask("GET", w.detail(), "", "X-Authorization", "Bearer "+w.OwnerToken, "X-Pai-Token", w.OwnerToken, "Proxy-Authorization", "Bearer "+w.OwnerToken), unknown)
	one("a token in a WebSocket's protocol", w.upgrade(w.exec(w.Owner, w.Job), "", "Sec-WebSocket-Protocol", "v5.channel.k8s.io, base64url.bearer.authorization.k8s.io."+raw64.EncodeToString([]byte(w.OwnerToken))), unknown)
	one("another scheme", w.ask("GET", w.detail(), "", "Authorization", "Digest "+w.OwnerToken), unknown)
	return out
}

func cutSignature(token, instead string) string {
	i := strings.LastIndex(token, ".")
	return token[:i] + instead
}

func swapped(claims, signature string) string {
	return cutSignature(claims, signature[strings.LastIndex(signature, "."):])
}

func renamed(token, from, to string) string {
	parts := strings.Split(token, ".")
	claims, _ := raw64.DecodeString(parts[1]) // a token of the server
	parts[1] = raw64.EncodeToString([]byte(strings.ReplaceAll(string(claims), `"`+from+`"`, `"`+to+`"`)))
	return strings.Join(parts, ".")
}

func flipped(token string) string {
	i := strings.LastIndex(token, ".")
	signature, _ := raw64.DecodeString(token[i+1:]) // a token of the server
	signature[0] ^= 1
	return token[:i+1] + raw64.EncodeToString(signature)
}

// resigned returns a token with the same claims, another header, and the given signature.
func resigned(token string, header map[string]any, signature []byte) string {
	head, _ := json.Marshal(header) // of texts
	return raw64.EncodeToString(head) + "." + strings.Split(token, ".")[1] + "." + raw64.EncodeToString(signature)
}

func keyID(token string) string {
	head, _ := raw64.DecodeString(strings.Split(token, ".")[0]) // a token of the server
	var h struct{ Kid string }
	_ = json.Unmarshal(head, &h)
	return h.Kid
}

func hmacSigned(token string) string {
	id := keyID(token)
	t := resigned(token, map[string]any{"alg": "HS256", "typ": "JWT", "kid": id}, nil)
	mac := hmac.New(sha256.New, []byte(id))
	mac.Write([]byte(strings.TrimSuffix(t, ".")))
	return t + raw64.EncodeToString(mac.Sum(nil))
}

// ownKey signs the claims of a token with a key of the attacker. The token contains the key. If elsewhere is true, the token contains the address of
// the key instead.
func ownKey(token string, elsewhere bool) string {
	private := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	public := private.Public().(ed25519.PublicKey)
	key := map[string]any{"kty": "OKP", "crv": "Ed25519", "x": raw64.EncodeToString(public), "kid": keyID(token)}
	header := map[string]any{"alg": "EdDSA", "typ": "JWT", "kid": keyID(token), "jwk": key}
	if elsewhere {
		delete(header, "jwk")
		header["jku"] = "https://127.0.0.1:1/keys"
	}
	t := resigned(token, header, nil)
	return t + raw64.EncodeToString(ed25519.Sign(private, []byte(strings.TrimSuffix(t, "."))))
}
