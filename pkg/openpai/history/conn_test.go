package history

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/hint"
)

// framed returns a text that is preceded by its length.
func framed(text string) string {
	return string(binary.BigEndian.AppendUint32(nil, uint32(len(text)))) + text
}

func TestMessagesArriveAsTheyWereSent(t *testing.T) {
	var pipe bytes.Buffer
	c := NewConn(&pipe, &pipe)
	sent := []*Message{
		{Type: TypeAsk, UIDs: []string{"a", "b"}}, {Type: TypeKnown, Known: []bool{false, true}}, {Type: TypeDone, Report: &Report{Jobs: 3, LeftOut: []SkippedJob{{Name: "x\n\u2028"}}}},
	}
	for _, m := range sent {
		require.NoError(t, c.Send(m))
	}
	require.NoError(t, c.SendPart(strings.NewReader("a part, and more"), 6))
	for _, m := range sent {
		got, err := c.Receive()
		require.NoError(t, err)
		assert.Equal(t, m, got)
	}
	m, err := c.Receive()
	require.NoError(t, err)
	part, err := c.part(m.Size)
	require.NoError(t, err)
	text, err := io.ReadAll(iotest.OneByteReader(part))
	require.NoError(t, err)
	assert.Equal(t, "a part", string(text))
	_, err = c.Receive()
	assert.Equal(t, io.EOF, err)
}

func TestErrorsKeepTextAndRemedy(t *testing.T) {
	for _, err := range []error{nil, errors.New("plain"), hint.Errorf("do this", "that: %w", io.EOF)} {
		m := &Message{}
		m.SetError(err)
		assert.Equal(t, hint.Of(err), hint.Of(m.Err()))
		if err == nil {
			require.NoError(t, m.Err())
		} else {
			require.EqualError(t, m.Err(), err.Error())
		}
	}
}

func TestBytesThatAreNoMessagesAreErrors(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"a length without end":  {"\xff\xff\xff\xff", "4294967295 bytes, which are more than 67108864"},
		"lines of text":         {"Usage: something else\n", "bytes, which are more than"},
		"half a length":         {"\x00\x00", "unexpected EOF"},
		"half a message":        {framed(`{"type":"hello"}`)[:10], "unexpected EOF"},
		"a message that is cut": {"\x03\xff\xff\xff{", "unexpected EOF"},
		"no JSON":               {framed("hello"), "isn't JSON of this form"},
		"a list":                {framed("[]"), "isn't JSON of this form"},
		"another type":          {framed(`{"type":7}`), "isn't JSON of this form"},
		"an empty message":      {framed(""), "isn't JSON of this form"},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := NewConn(strings.NewReader(c.text), io.Discard).Receive()
			runtime.ReadMemStats(&after)
			require.ErrorContains(t, err, c.want)
			assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20), "memory isn't allocated for bytes that don't arrive")
		})
	}
}

func TestSizesOfPartsAreBounded(t *testing.T) {
	for _, size := range []int64{-1, 0, maxPart + 1} {
		_, err := NewConn(strings.NewReader(""), io.Discard).part(size)
		require.ErrorContains(t, err, "a part is said to have")
	}
}

func TestAPartThatIsCutDoesNotEndLikeAWholeOne(t *testing.T) {
	part, err := NewConn(strings.NewReader("half"), io.Discard).part(8)
	require.NoError(t, err)
	text, err := io.ReadAll(part)
	assert.Equal(t, "half", string(text))
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.ErrorIs(t, part.end(), io.ErrUnexpectedEOF)

	part, err = NewConn(strings.NewReader("whole, and more"), io.Discard).part(5)
	require.NoError(t, err)
	require.NoError(t, part.end(), "a receiver need not read it")
}

func TestAMessageThatIsTooLongIsNotSent(t *testing.T) {
	var out bytes.Buffer
	require.ErrorContains(t, NewConn(nil, &out).Send(&Message{Type: TypeDone, Error: strings.Repeat("x", maxMessage)}), "more than 67108864")
	assert.Zero(t, out.Len())
}
