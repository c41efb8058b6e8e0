package queue

import (
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/objectferry/objectferry/internal/object"
)

// EntryID is the id of the entry at an index: distinct within its batch.
func EntryID(index int) *string {
	id := strconv.Itoa(index)
	return &id
}

// SendErrors tells for each of the n entries of a batch, whose ids are EntryIDs,
// whether SQS took it: only nil is taken. Of a batch that is refused as a whole
// nobody knows which entry is unfit, so none is.
func SendErrors(n int, out *sqs.SendMessageBatchOutput, err error) []error {
	if e := Classify(err, opSend); e != nil && e.Class == object.Unfit && n > 1 {
		unknown := *e
		unknown.Class, err = object.Unknown, &unknown
	}
	if err != nil || out == nil {
		return entryErrors(opSend, n, nil, nil, err)
	}
	taken := make([]*string, len(out.Successful))
	for i, e := range out.Successful {
		taken[i] = e.Id
	}
	return entryErrors(opSend, n, taken, out.Failed, nil)
}

// DeleteErrors is SendErrors for a batch of deletes.
func DeleteErrors(n int, out *sqs.DeleteMessageBatchOutput, err error) []error {
	if err != nil || out == nil {
		return entryErrors(opDelete, n, nil, nil, err)
	}
	taken := make([]*string, len(out.Successful))
	for i, e := range out.Successful {
		taken[i] = e.Id
	}
	return entryErrors(opDelete, n, taken, out.Failed, nil)
}

// changeErrors is SendErrors for a batch of changes of visibility.
func changeErrors(n int, out *sqs.ChangeMessageVisibilityBatchOutput, err error) []error {
	if err != nil || out == nil {
		return entryErrors(opChange, n, nil, nil, err)
	}
	taken := make([]*string, len(out.Successful))
	for i, e := range out.Successful {
		taken[i] = e.Id
	}
	return entryErrors(opChange, n, taken, out.Failed, nil)
}

// entryErrors is what became of each of n entries; err is that of the call. An
// entry that the answer does not name was not taken.
func entryErrors(op string, n int, taken []*string, failed []types.BatchResultErrorEntry, err error) []error {
	errs := make([]error, n)
	for i := range errs {
		if err != nil {
			errs[i] = Classify(err, op)
			continue
		}
		errs[i] = &object.Error{Side: object.Queue, Op: op, Class: object.Unavailable, Code: "entry not answered"}
	}
	index := func(id *string) (int, bool) {
		i, err := strconv.Atoi(deref(id))
		return i, err == nil && i >= 0 && i < n
	}
	for _, id := range taken {
		if i, ok := index(id); ok {
			errs[i] = nil
		}
	}
	for _, f := range failed {
		if i, ok := index(f.Id); ok {
			errs[i] = entryError(f, op)
		}
	}
	return errs
}

// result is the label of a batch call: ok, partial, or a class of error.
func result(err error, errs []error) string {
	if err != nil {
		return string(Classify(err, "").Class)
	}
	for _, e := range errs {
		if e != nil {
			return "partial"
		}
	}
	return "ok"
}
