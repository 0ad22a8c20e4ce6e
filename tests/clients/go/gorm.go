package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"
)

// gormLog keeps the statements that change the schema.
type gormLog struct{ changes []string }

func (log *gormLog) LogMode(logger.LogLevel) logger.Interface      { return log }
func (log *gormLog) Info(context.Context, string, ...interface{})  {}
func (log *gormLog) Warn(context.Context, string, ...interface{})  {}
func (log *gormLog) Error(context.Context, string, ...interface{}) {}
func (log *gormLog) Trace(_ context.Context, _ time.Time, statement func() (string, int64), _ error) {
	text, _ := statement()
	if strings.HasPrefix(text, "ALTER") || strings.HasPrefix(text, "CREATE") {
		log.changes = append(log.changes, text)
	}
}

type gormCustomer struct {
	ID        uint64
	Name      string  `gorm:"size:80;not null;index:by_name,priority:1;comment:as on the invoice"`
	Email     *string `gorm:"size:120;uniqueIndex"`
	Status    string  `gorm:"type:enum('new','active','gone');default:new"`
	Credit    string  `gorm:"type:decimal(20,6);not null;default:0.000000"`
	Score     *float64
	Small     uint16
	IsActive  bool   `gorm:"not null;default:true"`
	Photo     []byte `gorm:"type:mediumblob"`
	Settings  string `gorm:"type:json;default:null"`
	Notes     string
	CreatedAt time.Time `gorm:"index:by_name,priority:2"`
	UpdatedAt time.Time
	DeletedAt gorm.DeletedAt `gorm:"index"`
	Invoices  []gormInvoice  `gorm:"foreignKey:CustomerID;constraint:OnDelete:CASCADE"`
}

func (gormCustomer) TableName() string { return "customers" }

type gormInvoice struct {
	ID         uint
	CustomerID uint64 `gorm:"not null"`
	Number     string `gorm:"size:20;uniqueIndex:one_number"`
	Total      string `gorm:"type:decimal(10,2);check:total_is_positive,total >= 0"`
}

func (gormInvoice) TableName() string { return "invoices" }

// gormLaterInvoice is the table of invoices after a change.
type gormLaterInvoice struct {
	gormInvoice
	Phone string `gorm:"size:30;not null;default:none"`
	Paid  *time.Time
}

// gormSession creates a schema, migrates it again without a change, extends it, and reads and writes objects.
func gormSession() {
	admin := fmt.Sprintf("root@tcp(127.0.0.1:%s)/", os.Args[1])
	log := &gormLog{}
	options := &gorm.Config{Logger: log, TranslateError: true}
	db, err := gorm.Open(mysql.Open(admin), options)
	must(err)
	must(db.Exec("DROP DATABASE IF EXISTS client_gorm").Error)
	must(db.Exec("CREATE DATABASE client_gorm").Error)
	db, err = gorm.Open(mysql.Open(admin+"client_gorm?charset=utf8mb4&parseTime=True&loc=UTC"), options)
	must(err)
	must(db.AutoMigrate(&gormCustomer{}, &gormInvoice{}))
	log.changes = nil
	must(db.AutoMigrate(&gormCustomer{}, &gormInvoice{}))
	expect("changes of a second migration", log.changes, []string{})
	must(db.AutoMigrate(&gormLaterInvoice{}))
	expect("changes of an extension", len(log.changes), 2)
	log.changes = nil
	must(db.AutoMigrate(&gormCustomer{}, &gormLaterInvoice{}))
	expect("changes after the extension", log.changes, []string{})
	for _, name := range []string{"by_name", "idx_customers_email", "idx_customers_deleted_at"} {
		expect(name, db.Migrator().HasIndex(&gormCustomer{}, name), true)
	}
	expect("constraint", db.Migrator().HasConstraint(&gormCustomer{}, "Invoices"), true)
	expect("check", db.Migrator().HasConstraint(&gormInvoice{}, "total_is_positive"), true)
	gormObjects(db)
	must(db.Exec("DROP DATABASE client_gorm").Error)
}

func gormObjects(db *gorm.DB) {
	email := "z@x"
	zoe := gormCustomer{Name: "Zoë 😀", Email: &email, Photo: []byte{0, 255}, Settings: `{"a": [1, null]}`,
		Invoices: []gormInvoice{{Number: "A1", Total: "12.50"}, {Number: "A2", Total: "7.25"}}}
	must(db.Create(&zoe).Error)
	many := make([]gormCustomer, 50)
	for i := range many {
		score := float64(i) / 2
		many[i] = gormCustomer{Name: fmt.Sprintf("name %d", i), Score: &score, Settings: "null"}
	}
	must(db.CreateInBatches(&many, 20).Error)
	var read gormCustomer
	must(db.Preload("Invoices", func(db *gorm.DB) *gorm.DB { return db.Order("number DESC") }).First(&read, zoe.ID).Error)
	expect("customer", []any{read.Name, read.Status, read.Credit, read.IsActive, read.Settings, read.Photo, len(read.Invoices), read.Invoices[0].Number},
		[]any{"Zoë 😀", "new", "0.000000", true, `{"a": [1, null]}`, []byte{0, 255}, 2, "A2"})
	expect("creation", read.CreatedAt.Equal(zoe.CreatedAt.Truncate(time.Millisecond)) || read.CreatedAt.Equal(zoe.CreatedAt.Round(time.Millisecond)), true)
	result := db.Model(&gormCustomer{}).Where("score BETWEEN ? AND ?", 1, 2).Updates(map[string]any{"status": "active", "small": gorm.Expr("small + ?", 7)})
	must(result.Error)
	expect("updated", result.RowsAffected, 3)
	err := db.Create(&gormInvoice{CustomerID: zoe.ID, Number: "A2", Total: "1"}).Error
	expect("duplicate", errors.Is(err, gorm.ErrDuplicatedKey), true)
	err = db.Create(&gormInvoice{CustomerID: 4711, Number: "A3", Total: "1"}).Error
	expect("foreign key", errors.Is(err, gorm.ErrForeignKeyViolated), true)
	must(db.Clauses(clause.OnConflict{UpdateAll: true}).Create(&gormInvoice{ID: zoe.Invoices[0].ID, CustomerID: zoe.ID, Number: "A1", Total: "20"}).Error)
	type sum struct {
		Name  string
		Total string
	}
	var sums []sum
	must(db.Model(&gormCustomer{}).Select("customers.name, SUM(i.total) AS total").Joins("JOIN invoices AS i ON i.customer_id = customers.id").
		Group("customers.id").Having("COUNT(*) > ?", 1).Scan(&sums).Error)
	expect("sums", sums, []sum{{"Zoë 😀", "27.25"}})
	undone := db.Transaction(func(tx *gorm.DB) error {
		var locked gormCustomer
		must(tx.Clauses(clause.Locking{Strength: "UPDATE"}).First(&locked, zoe.ID).Error)
		must(tx.Transaction(func(inner *gorm.DB) error { return inner.Delete(&locked).Error }))
		return errors.New("undo")
	})
	expect("undone", undone, "undo")
	must(db.Where("name LIKE ?", "name 4%").Delete(&gormCustomer{}).Error)
	var left int64
	must(db.Model(&gormCustomer{}).Count(&left).Error)
	expect("customers after a soft delete", left, 40)
	must(db.Unscoped().Delete(&zoe).Error)
	must(db.Model(&gormInvoice{}).Count(&left).Error)
	expect("invoices after a cascade", left, 0)
}
