package v1

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

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
