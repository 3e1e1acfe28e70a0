package v1

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Only the latest times are kept.
func TestReturns(t *testing.T) {
	at := time.Date(2026, 11, 30, 9, 0, 0, 5, time.UTC)
	text := ""
	for i := range 30 {
		var err error
		text, err = WriteReturns(ReadReturns(map[string]string{ReturnsAnnotation: text}), at.Add(time.Duration(i)*time.Hour))
		require.NoError(t, err)
	}
	all := ReadReturns(map[string]string{ReturnsAnnotation: text})
	require.Len(t, all, 20)
	assert.Equal(t, at.Add(29*time.Hour).Truncate(time.Second), all[19])
	for _, text := range []string{"", "{", `{"a":1}`, `["x"]`} {
		assert.Empty(t, ReadReturns(map[string]string{ReturnsAnnotation: text}), text)
	}
}

func TestAMarkIsRead(t *testing.T) {
	m := ReadMark(map[string]string{MarkAnnotation: `{"action":"drain-1","by":{"kind":"policy","name":"sick"},"reason":"XID 79"}`})
	if assert.NotNil(t, m) {
		assert.Equal(t, "cordoned by policy sick: XID 79", Cordoned(m.By.Text(), m.Reason))
	}
	for _, text := range []string{"", "{", "[]", `{"by":1}`} {
		assert.Nil(t, ReadMark(map[string]string{MarkAnnotation: text}), text)
	}
	assert.Nil(t, ReadMark(nil))
}

func TestWhoCordonedAMachineAndWhy(t *testing.T) {
	assert.Empty(t, Cordoned("", ""))
	assert.Equal(t, "cordoned: a fan", Cordoned("", "a fan"))
	assert.Equal(t, "cordoned by root", Cordoned("root", ""))
	assert.Equal(t, "cordoned by operator dev: a fan", Cordoned((&Requester{Kind: ByOperator, Name: "dev"}).Text(), "a fan"))
	assert.Equal(t, "root", (&Requester{Kind: ByPerson, Name: "root"}).Text())
	assert.Empty(t, (&Requester{}).Text())
}
