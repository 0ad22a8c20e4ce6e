//! Hot path, budget 30 instructions a known statement without the lookup: finds or makes the plan of the
//! statement whose shape was scanned last.

use std::sync::Arc;

use junctor_expression::ResultType;
use junctor_model::error::Result;

use super::facts::StatementFacts;
use crate::bind::{ParameterKind, message};
use crate::execute::{Engine, LockCallMode, StatementContext};
use crate::mysql_catalog::variable::evaluate_session_expression;
use crate::parse::lift::{can_keep, lift_session_values};
use crate::parse::{Expression, ParameterNumber, Parameterised, parse_with_parameters};
use crate::plan::kinds_of_shape;
use crate::plan::{CachedShape, Plan, PlanKey, PlanVariants};

impl StatementContext<'_, '_> {
    /// The plan of a statement whose parameters are the lifted literals of its shape. `None` if no plan can
    /// be reused: the statement is then planned with its literals.
    ///
    /// # Errors
    /// The errors of parsing, binding and planning.
    #[inline(always)]
    pub(super) fn plan_of_shape(&mut self, text: &[u8]) -> Result<Option<Plan>> {
        self.engine.work.session_values.clear();
        let key = Engine::plan_key(&self.engine.shape, self.session);
        match self.engine.cache.get(&key, &self.engine.gateway.catalog().dictionary) {
            Some(CachedShape::Plan(plan)) => Ok(Some(plan)),
            Some(CachedShape::Variants(kept)) => self.plan_of_variant(text, &kept),
            None => self.plan_shape(text),
        }
    }

    /// The plan of a statement whose shape keeps some literals.
    fn plan_of_variant(&mut self, text: &[u8], kept: &PlanVariants) -> Result<Option<Plan>> {
        if !kept.has_plans() || !can_keep(&kept.ordinals, &self.engine.shape) {
            return Ok(None);
        }
        if !self.evaluate_session_values(&kept.session_values) {
            return Ok(None);
        }
        let hash = self.make_variant(text, &kept.ordinals);
        let engine = &mut *self.engine;
        let shape_key = Engine::plan_key(&engine.shape, self.session);
        let key = PlanKey { hash, text: &engine.work.variant, ..shape_key };
        if let Some(CachedShape::Plan(plan)) = engine.cache.get(&key, &engine.gateway.catalog().dictionary) {
            kept.note_use();
            return Ok(Some(plan));
        }
        kept.note_plan();
        self.plan_shape(text)
    }

    /// Plans a statement that has no plan yet.
    #[cold]
    fn plan_shape(&mut self, text: &[u8]) -> Result<Option<Plan>> {
        let (mut statement, kept) = match parse_with_parameters(text, &self.engine.shape) {
            Ok(Parameterised::Statement { statement, kept }) => (statement, kept),
            Ok(Parameterised::LiteralsMatter) => {
                self.cache_shape(CachedShape::Variants(Arc::default()));
                return Ok(None);
            }
            Err(error) => return Err(message::of_parse_error(&error)),
        };
        let first = ParameterNumber(self.engine.shape.slot_count() as u32);
        let session_values = {
            let facts = StatementFacts { engine: self.engine, session: self.session, turn: self.turn };
            let session_context = facts.session_context();
            let is_session_value = |expression: &Expression| {
                matches!(evaluate_session_expression(expression, &session_context), Ok(Some(_)))
            };
            lift_session_values(&mut statement, first, &is_session_value)
        };
        kinds_of_shape(&self.engine.shape, &mut self.engine.work.kinds);
        self.evaluate_session_values(&session_values);
        let collation = self.session.variables.collation_connection.implemented_as;
        let work = &mut self.engine.work;
        let types = work.session_values.iter().map(|value| ResultType::of_value(value.as_ref(), collation));
        work.kinds.extend(types.map(ParameterKind::exactly));
        self.engine.lock_calls.get_mut().set_mode(LockCallMode::Described);
        let planned = self.plan(&statement, self.session.database());
        self.engine.lock_calls.get_mut().set_mode(LockCallMode::Refused);
        let Some(planned) = planned? else { return Ok(None) };
        if planned.is_volatile {
            // The plan is valid for one execution only, so the statement is planned with its literals instead
            // of parameters. The reason is in the text, so this applies to all statements of the shape.
            self.cache_shape(CachedShape::Variants(Arc::default()));
            return Ok(None);
        }
        self.engine.counters.plans += 1;
        let plan = planned.plan;
        if kept.is_empty() && session_values.is_empty() {
            self.cache_shape(CachedShape::Plan(plan.clone()));
            return Ok(Some(plan));
        }
        let hash = self.make_variant(text, &kept);
        let engine = &mut *self.engine;
        let shape_key = Engine::plan_key(&engine.shape, self.session);
        let dictionary = &engine.gateway.catalog().dictionary;
        // An existing entry stays, because it counts the plans made since the last hit.
        if engine.cache.get(&shape_key, dictionary).is_none() {
            let kept = PlanVariants::new(&kept, session_values);
            engine.cache.put(&shape_key, CachedShape::Variants(Arc::new(kept)), dictionary);
        }
        let key = PlanKey { hash, text: &engine.work.variant, ..shape_key };
        engine.cache.put(&key, CachedShape::Plan(plan.clone()), dictionary);
        Ok(Some(plan))
    }

    /// Evaluates the expressions whose value only the session knows into the workspace. Returns false if one
    /// no longer has a value.
    fn evaluate_session_values(&mut self, expressions: &[Expression]) -> bool {
        let mut values = std::mem::take(&mut self.engine.work.session_values);
        values.clear();
        if !expressions.is_empty() {
            let facts = StatementFacts { engine: self.engine, session: self.session, turn: self.turn };
            let session_context = facts.session_context();
            let value = |expression| evaluate_session_expression(expression, &session_context).ok().flatten();
            values.extend(expressions.iter().map_while(value));
        }
        let has_all = values.len() == expressions.len();
        self.engine.work.session_values = values;
        has_all
    }

    /// Writes the plan cache key for these kept literals and the types of the session values into the
    /// workspace. Returns the hash of the key.
    fn make_variant(&mut self, text: &[u8], kept: &[ParameterNumber]) -> [u64; 2] {
        let Engine { shape, work, .. } = &mut *self.engine;
        let collation = self.session.variables.collation_connection.implemented_as;
        work.variant.clear();
        shape.append_with_kept(text, kept, &mut work.variant);
        for value in &work.session_values {
            let result = ResultType::of_value(value.as_ref(), collation);
            work.variant.extend_from_slice(&[result.kind as u8, result.decimals]);
            work.variant.extend_from_slice(&result.length.to_le_bytes());
        }
        shape.hash_of(&work.variant)
    }

    /// Stores what is known about the shape that was scanned last in the plan cache.
    fn cache_shape(&mut self, known: CachedShape) {
        let key = Engine::plan_key(&self.engine.shape, self.session);
        self.engine.cache.put(&key, known, &self.engine.gateway.catalog().dictionary);
    }
}
