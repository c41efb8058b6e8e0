package queue

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Redrive is what a queue's redrive policy says: where SQS itself moves a
// message, and after how many receives.
type Redrive struct {
	ARN           string // of the dead-letter queue
	Account, Name string // of it
	Max           int    // maxReceiveCount
}

// RedrivePolicy reads the queue attribute of this name, "" where there is none.
// Its maxReceiveCount comes as a number or as text. An error says what the queue
// has instead of a policy.
func RedrivePolicy(text string) (Redrive, error) {
	if text == "" {
		return Redrive{}, errors.New("has no redrive policy")
	}
	var p struct {
		Target string          `json:"deadLetterTargetArn"`
		Max    json.RawMessage `json:"maxReceiveCount"`
	}
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return Redrive{}, errors.New("has a redrive policy that cannot be read: it is not JSON")
	}
	limit, err := strconv.Atoi(strings.Trim(string(p.Max), `"`))
	arn := strings.Split(p.Target, ":")
	if err != nil || len(arn) != 6 {
		return Redrive{}, fmt.Errorf("has a redrive policy that cannot be read: target %q and maxReceiveCount %s", p.Target, p.Max)
	}
	return Redrive{ARN: p.Target, Account: arn[4], Name: arn[5], Max: limit}, nil
}
