package token

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/people/rules"
)

func TestARecordComesBackAsItWasWritten(t *testing.T) {
	now := time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)
	e := &entry{
		Record: Record{ID: newID(), User: "ann", Kind: KindSession, Label: "l", Scopes: []rules.Scope{"read", "admin"}, Client: "c", Address: "a", Created: now, Expires: now.Add(time.Hour), Used: now},
		person: "uid", hash: hashOf("x"), previous: hashOf("y"), until: now.Add(grace), next: []byte("sealed"), sessions: 7,
	}
	u, err := e.object()
	require.NoError(t, err)
	got, err := decode(u)
	require.NoError(t, err)
	assert.Equal(t, e, got.entry)
}

func TestARecordThatCannotBeReadIsNone(t *testing.T) {
	good := func() map[string][]byte {
		return map[string][]byte{"user": []byte("ann"), "uid": []byte("u"), "kind": []byte("browser"), "hash": []byte(hashOf("x")), "sessions": []byte("0"), "created": []byte("2026-11-27T10:00:00Z")}
	}
	read := func(name string, data map[string][]byte) error {
		_, err := decodeRecord(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data})
		return err
	}
	name := "token-" + strings.Repeat("a", 20)
	require.NoError(t, read(name, good()))
	assert.Error(t, read("password-ann", good()))
	assert.Error(t, read("token-../x", good()))
	for key, value := range map[string]string{"user": "", "uid": "", "kind": "cookie", "hash": "short", "sessions": "x", "created": "yesterday", "expires": "never", "scopes": "root"} {
		data := good()
		data[key] = []byte(value)
		assert.Error(t, read(name, data), key)
	}
	data := good()
	delete(data, "created")
	assert.Error(t, read(name, data))
	_, err := parseKeys([]byte(`{"a":{"seed":"c2hvcnQ="}}`))
	assert.ErrorContains(t, err, "wrong size")
	_, err = parseKeys([]byte(`{"a":"SECRET`))
	assert.ErrorContains(t, err, "can't be read")
	assert.NotContains(t, err.Error(), "SECRET")
}

func TestANewKeySignsOnceAllKnowIt(t *testing.T) {
	now := time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)
	first := keyring{}.rotated(now)
	id, _ := first.signing(now)
	assert.NotEmpty(t, id, "the first signs at once")
	assert.False(t, first.due(now.Add(29*24*time.Hour), 30*24*time.Hour))
	later := now.Add(30 * 24 * time.Hour)
	require.True(t, first.due(later, 30*24*time.Hour))
	second := first.rotated(later)
	require.Len(t, second, 2)
	still, _ := second.signing(later.Add(spread - time.Second))
	assert.Equal(t, id, still, "another replica may not know the new one yet")
	next, _ := second.signing(later.Add(spread))
	assert.NotEqual(t, id, next)
	_, known := second.public(id, later.Add(keep))
	assert.True(t, known, "what it signed may last for seven days")
	_, known = second.public(id, later.Add(keep+2*spread))
	assert.False(t, known)
	assert.Len(t, second.rotated(later.Add(30*24*time.Hour)), 2, "a key that retired long ago is gone")
}

func FuzzDecode(f *testing.F) {
	f.Add(`{"metadata":{"name":"token-aaaaaaaaaaaaaaaaaaaa"},"data":{"user":"YW5u","kind":"YnJvd3Nlcg=="}}`)
	f.Add(`{"metadata":{"name":"signing-keys"},"data":{"keys":"e30="}}`)
	f.Add(`{"metadata":{"name":"token-aaaaaaaaaaaaaaaaaaaa"},"data":{"sessions":"LTE=","until":"eA=="}}`)
	f.Fuzz(func(t *testing.T, text string) {
		s := &corev1.Secret{}
		if json.Unmarshal([]byte(text), s) != nil {
			return
		}
		u, err := toObject(s)
		if err != nil {
			return
		}
		got, err := decode(u)
		if err == nil && got.entry != nil && (got.entry.User == "" || got.entry.person == "" || !idForm.MatchString(got.entry.ID)) {
			t.Fatalf("a record of no one: %+v", got.entry)
		}
	})
}
